/*
 * vspxml.h: domain XML, read as hostile input; the only home of libxml2
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_XML_H
#define VSP_XML_H

#include <glib.h>

#define VSP_XML_NAMESPACE "urn:vmspool:domain:1.0"

/* What we know about a domain, read from its XML or to be written into one. All owned. */
typedef struct {
    char *name;
    char *uuid;
    guint64 memory;        /* bytes */
    guint vcpus;           /* 0: not said */
    char *arch;            /* "x86_64" */
    char *machine;         /* "pc-i440fx-7.2" */
    char *emulator;        /* path */
    gboolean kvm;          /* <domain type='kvm'>, else 'qemu' */
    char **recordedCommand; /* NULL-terminated, from <metadata> in our namespace; NULL if none */
} vspDomainXml;

/* @xml need not be NUL-terminated. No network, no DTD, no entities; depth and size are bounded. */
vspDomainXml *vspDomainXmlParse(const char *xml, gsize len, GError **error);

/* A minimal domain XML that libvirt accepts. */
char *vspDomainXmlFormat(const vspDomainXml *domain);

void vspDomainXmlFree(vspDomainXml *domain);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspDomainXml, vspDomainXmlFree)

#endif /* VSP_XML_H */
