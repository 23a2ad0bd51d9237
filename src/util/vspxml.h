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
    guint64 memory;         /* bytes; 0: not said */
    guint vcpus;            /* 0: not said */
    char *arch;             /* "x86_64" */
    char *machine;          /* "pc-i440fx-7.2" */
    char *emulator;         /* path */
    gboolean kvm;           /* <domain type='kvm'>, else 'qemu' */
    char **recordedCommand; /* NULL-terminated, from <metadata> in our namespace; NULL if none */
} vspDomainXml;

/*
 * @xml need not be NUL-terminated. UTF-8 only; no network, no document type, no entities but the
 * five of XML itself; at most 256 levels and 16 MiB. VSP_ERROR_INVALID_ARGUMENT if it is not such,
 * or not of a domain. What a domain does not say, or says in a way that makes no sense, is NULL or
 * 0.
 */
vspDomainXml *vspDomainXmlParse(const char *xml, gsize len, GError **error);

/*
 * A minimal domain XML that libvirt accepts.
 *
 * In the name, what libvirt refuses (slash, control characters, bytes that are not UTF-8) becomes
 * '_'. An argument of the recorded command may be any bytes, as execve(2) takes them. One that XML
 * can't carry unchanged (control characters, bytes that are not UTF-8, blanks at either end) is
 * written as <vsp:arg encoding='base64'>. Another text of that kind is left out, and a UUID that is
 * missing or none is made up.
 */
char *vspDomainXmlFormat(const vspDomainXml *domain);

void vspDomainXmlFree(vspDomainXml *domain);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspDomainXml, vspDomainXmlFree)

#endif /* VSP_XML_H */
