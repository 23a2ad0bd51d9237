/*
 * vspxml.c: domain XML, read and written
 *
 * The text comes from a file that anybody may have made, so it is read by libxml2's event
 * interface: no tree is built, the few elements of interest are picked up as they pass, and the
 * first thing that has no place in domain XML (a document type, and with it every entity; a nesting
 * that no domain has) ends the parse. The encoding is UTF-8 or an error: conversion is a part of
 * libxml2 that reports to a global handler, which by default prints.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>
#include <glib/gi18n-lib.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h> /* xmlCreateMemoryParserCtxt() in older releases */
#include <libxml/xmlerror.h>

#include "vsperrorpriv.h"
#include "vspxml.h"

#define DEPTH_MAX 256
#define SIZE_MAX_BYTES (16 * 1024 * 1024)

/* What the element that is open, and whose text is being gathered, is good for. */
typedef enum {
    FIELD_NONE = 0,
    FIELD_NAME,
    FIELD_UUID,
    FIELD_MEMORY,
    FIELD_VCPU,
    FIELD_EMULATOR,
    FIELD_ARG,
} field;

typedef struct {
    vspDomainXml *domain;
    xmlParserCtxtPtr context;
    GPtrArray *path; /* names of the open elements, as pathName() has them */
    GString *text;
    field field;
    gsize fieldDepth;
    char *unit;
    gboolean base64;
    GPtrArray *args; /* NULL without a recorded command */
    gboolean badArgs;
    GError *error; /* the first */
} reader;

static void
fail(reader *self, GError *error)
{
    if (self->error)
        g_error_free(error);
    else
        self->error = error;
    xmlStopParser(self->context);
}

/* Bytes in @unit, as libvirt knows them; 0 for one that it does not. */
static guint64
unitSize(const char *unit)
{
    static const struct {
        const char *name;
        guint64 size;
    } units[] = {
        { "b", 1 },          { "byte", 1 },         { "bytes", 1 },
        { "k", 1ULL << 10 }, { "KiB", 1ULL << 10 }, { "KB", 1000ULL },
        { "M", 1ULL << 20 }, { "MiB", 1ULL << 20 }, { "MB", 1000000ULL },
        { "G", 1ULL << 30 }, { "GiB", 1ULL << 30 }, { "GB", 1000000000ULL },
        { "T", 1ULL << 40 }, { "TiB", 1ULL << 40 }, { "TB", 1000000000000ULL },
        { "P", 1ULL << 50 }, { "PiB", 1ULL << 50 }, { "PB", 1000000000000000ULL },
        { "E", 1ULL << 60 }, { "EiB", 1ULL << 60 }, { "EB", 1000000000000000000ULL },
    };

    if (!unit || !*unit)
        return 1024;
    for (gsize i = 0; i < G_N_ELEMENTS(units); i++) {
        if (g_ascii_strcasecmp(unit, units[i].name) == 0)
            return units[i].size;
    }
    return 0;
}

/* A number that makes no sense counts as none: the image may be restored all the same. */
static guint64
parseNumber(const char *text, guint64 max)
{
    guint64 number;

    return g_ascii_string_to_unsigned(text, 10, 0, max, &number, NULL) ? number : 0;
}

static guint64
parseMemory(const char *text, const char *unit)
{
    guint64 size = unitSize(unit);

    return size ? parseNumber(text, G_MAXUINT64 / size) * size : 0;
}

/* The text of one argument; NULL if it is none. */
static char *
parseArg(const char *text, gboolean base64)
{
    g_autofree guchar *bytes = NULL;
    gsize len;

    if (!base64)
        return g_strdup(text);
    bytes = g_base64_decode(text, &len);
    if (len == 0 || memchr(bytes, '\0', len))
        return NULL;
    return g_strndup((const char *)bytes, len);
}

/* @attributes is libxml2's: name, prefix, namespace, begin, end of the value. */
static char *
getAttribute(const xmlChar **attributes, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        const xmlChar **attribute = attributes + 5 * i;

        if (!attribute[2] && g_str_equal((const char *)attribute[0], name))
            return g_strndup((const char *)attribute[3], attribute[4] - attribute[3]);
    }
    return NULL;
}

/* What an element is called in the path. Names of namespaces that are not ours are of no interest,
 * and can be long: they are not copied for each of their elements. */
static char *
pathName(const char *name, const char *prefix, const char *uri)
{
    if (g_strcmp0(uri, VSP_XML_NAMESPACE) == 0)
        return g_strconcat("{" VSP_XML_NAMESPACE "}", name, NULL);
    return g_strdup(prefix || uri ? "{}" : name);
}

static gboolean
isPath(const reader *self, const char *const *names)
{
    guint i;

    for (i = 0; names[i]; i++) {
        if (i >= self->path->len || !g_str_equal(g_ptr_array_index(self->path, i), names[i]))
            return FALSE;
    }
    return i == self->path->len;
}

#define IS_PATH(self, ...) isPath(self, (const char *const[]){ __VA_ARGS__, NULL })
#define OURS(name) "{" VSP_XML_NAMESPACE "}" name

/* Which text to gather inside the element that was just opened. Where something comes twice, the
 * first one counts. */
static field
chooseField(const reader *self)
{
    if (IS_PATH(self, "domain", "name"))
        return self->domain->name ? FIELD_NONE : FIELD_NAME;
    if (IS_PATH(self, "domain", "uuid"))
        return self->domain->uuid ? FIELD_NONE : FIELD_UUID;
    if (IS_PATH(self, "domain", "memory"))
        return self->domain->memory ? FIELD_NONE : FIELD_MEMORY;
    if (IS_PATH(self, "domain", "vcpu"))
        return self->domain->vcpus ? FIELD_NONE : FIELD_VCPU;
    if (IS_PATH(self, "domain", "devices", "emulator"))
        return self->domain->emulator ? FIELD_NONE : FIELD_EMULATOR;
    if (IS_PATH(self, "domain", "metadata", OURS("qemu"), OURS("arg")))
        return FIELD_ARG;
    return FIELD_NONE;
}

static void
openRoot(reader *self, const char *name, const xmlChar **attributes, int count)
{
    g_autofree char *type = NULL;

    if (!IS_PATH(self, "domain")) {
        g_autofree char *escaped = vspNameEscape(name);

        fail(self, g_error_new(VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT,
                               _("the XML describes \"%s\", not a domain"), escaped));
        return;
    }
    type = getAttribute(attributes, count, "type");
    self->domain->kvm = g_strcmp0(type, "kvm") == 0;
}

static void
onStartElement(void *opaque,
               const xmlChar *localname,
               const xmlChar *prefix,
               const xmlChar *uri,
               int nNamespaces,
               const xmlChar **namespaces,
               int nAttributes,
               int nDefaulted,
               const xmlChar **attributes)
{
    reader *self = opaque;
    const char *name = (const char *)localname;

    if (self->error)
        return;
    if (self->path->len >= DEPTH_MAX) {
        fail(self, g_error_new(VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT,
                               _("the XML is nested more than %d levels deep"), DEPTH_MAX));
        return;
    }
    g_ptr_array_add(self->path, pathName(name, (const char *)prefix, (const char *)uri));

    if (self->path->len == 1) {
        openRoot(self, name, attributes, nAttributes);
        return;
    }
    if (IS_PATH(self, "domain", "os", "type")) {
        if (!self->domain->arch)
            self->domain->arch = getAttribute(attributes, nAttributes, "arch");
        if (!self->domain->machine)
            self->domain->machine = getAttribute(attributes, nAttributes, "machine");
        return;
    }
    if (IS_PATH(self, "domain", "metadata", OURS("qemu"))) {
        /* A second one would append to the first: take neither. */
        if (self->args)
            self->badArgs = TRUE;
        else
            self->args = g_ptr_array_new_with_free_func(g_free);
        return;
    }
    if (self->field != FIELD_NONE) {
        /* Markup inside: only the field's own text counts. */
        return;
    }
    self->field = chooseField(self);
    if (self->field == FIELD_NONE)
        return;
    self->fieldDepth = self->path->len;
    g_string_truncate(self->text, 0);
    if (self->field == FIELD_MEMORY) {
        g_free(self->unit);
        self->unit = getAttribute(attributes, nAttributes, "unit");
    } else if (self->field == FIELD_ARG) {
        g_autofree char *encoding = getAttribute(attributes, nAttributes, "encoding");

        self->base64 = g_strcmp0(encoding, "base64") == 0;
        self->badArgs = self->badArgs || (encoding && !self->base64);
    }
}

static void
finishField(reader *self)
{
    vspDomainXml *domain = self->domain;
    char *arg;

    if (self->field != FIELD_ARG && self->field != FIELD_NAME)
        g_strstrip(self->text->str);

    switch (self->field) {
    case FIELD_NAME:
        domain->name = g_strdup(self->text->str);
        break;
    case FIELD_UUID:
        domain->uuid = g_strdup(self->text->str);
        break;
    case FIELD_MEMORY:
        domain->memory = parseMemory(self->text->str, self->unit);
        break;
    case FIELD_VCPU:
        domain->vcpus = (guint)parseNumber(self->text->str, G_MAXUINT);
        break;
    case FIELD_EMULATOR:
        domain->emulator = g_strdup(self->text->str);
        break;
    case FIELD_ARG:
        arg = parseArg(self->text->str, self->base64);
        if (arg)
            g_ptr_array_add(self->args, arg);
        else
            self->badArgs = TRUE;
        break;
    case FIELD_NONE:
        break;
    }
    self->field = FIELD_NONE;
}

static void
onEndElement(void *opaque, const xmlChar *localname, const xmlChar *prefix, const xmlChar *uri)
{
    reader *self = opaque;

    if (self->error || self->path->len == 0)
        return;
    if (self->field != FIELD_NONE && self->path->len == self->fieldDepth)
        finishField(self);
    g_ptr_array_set_size(self->path, (int)self->path->len - 1);
}

static void
onText(void *opaque, const xmlChar *text, int len)
{
    reader *self = opaque;

    if (self->field != FIELD_NONE && self->path->len == self->fieldDepth)
        g_string_append_len(self->text, (const char *)text, len);
}

static void
onDocumentType(void *opaque,
               const xmlChar *name,
               const xmlChar *externalId,
               const xmlChar *systemId)
{
    fail(opaque, g_error_new(VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT,
                             _("the XML has a document type declaration, which is refused")));
}

static void
onError(void *opaque, xmlErrorPtr failure)
{
    reader *self = opaque;
    g_autofree char *message = NULL;
    g_autofree char *escaped = NULL;

    /* Less than fatal are namespaces that are not declared and the like. libvirt takes them. */
    if (self->error || failure->level < XML_ERR_FATAL)
        return;
    message = g_strstrip(g_strdup(failure->message ? failure->message : "?"));
    escaped = vspNameEscape(message);
    fail(self, g_error_new(VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT,
                           _("the XML is not well-formed in line %d: %s"), failure->line, escaped));
}

static int
checkText(const char *xml, gsize len, GError **error)
{
    const char *end;

    if (len > SIZE_MAX_BYTES) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                    _("the XML is %zu bytes long, more than the limit of %d"), len, SIZE_MAX_BYTES);
        return -1;
    }
    if (len == 0) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT, _("the XML is empty"));
        return -1;
    }
    /* Refuses NUL too, and with it every encoding of more than one byte per letter. */
    if (!g_utf8_validate_len(xml, len, &end)) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT, _("the XML is not UTF-8 text at byte %zu"),
                    (gsize)(end - xml));
        return -1;
    }
    return 0;
}

static int
runParser(reader *self, const char *xml, gsize len)
{
    static gsize once;
    xmlSAXHandler sax = {
        .initialized = XML_SAX2_MAGIC,
        .startElementNs = onStartElement,
        .endElementNs = onEndElement,
        .characters = onText,
        .ignorableWhitespace = onText,
        .cdataBlock = onText,
        .internalSubset = onDocumentType,
        .serror = onError,
    };

    if (g_once_init_enter(&once)) {
        xmlInitParser();
        g_once_init_leave(&once, 1);
    }
    self->context = xmlCreateMemoryParserCtxt(xml, (int)len);
    if (!self->context) {
        g_set_error_literal(&self->error, VSP_ERROR, VSP_ERROR_FAILED,
                            _("the XML parser can't be started"));
        return -1;
    }
    xmlCtxtUseOptions(self->context, XML_PARSE_NONET | XML_PARSE_IGNORE_ENC);
    *self->context->sax = sax;
    self->context->userData = self;
    xmlParseDocument(self->context);
    /* Every error has come by onError(); this is for one that was not told. */
    if (!self->error && !self->context->wellFormed) {
        g_set_error_literal(&self->error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT,
                            _("the XML is not well-formed"));
    }
    xmlFreeParserCtxt(self->context);
    return self->error ? -1 : 0;
}

vspDomainXml *
vspDomainXmlParse(const char *xml, gsize len, GError **error)
{
    g_autoptr(vspDomainXml) domain = g_new0(vspDomainXml, 1);
    reader self = { .domain = domain };
    int rc;

    if (checkText(xml, len, error) < 0)
        return NULL;
    self.path = g_ptr_array_new_with_free_func(g_free);
    self.text = g_string_new(NULL);
    rc = runParser(&self, xml, len);
    if (rc == 0 && self.args && self.args->len > 0 && !self.badArgs) {
        g_ptr_array_add(self.args, NULL);
        domain->recordedCommand = (char **)g_ptr_array_free(g_steal_pointer(&self.args), FALSE);
    }
    g_clear_pointer(&self.args, g_ptr_array_unref);
    g_ptr_array_unref(self.path);
    g_string_free(self.text, TRUE);
    g_free(self.unit);
    if (rc < 0) {
        g_propagate_error(error, self.error);
        return NULL;
    }
    return g_steal_pointer(&domain);
}

/* XML 1.0 has no way to write most control characters, and parsers change or drop some of the white
 * space that it can write. */
static gboolean
isPlainText(const char *text)
{
    if (!g_utf8_validate(text, -1, NULL))
        return FALSE;
    for (const char *p = text; *p; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);

        if (g_unichar_iscntrl(c) || c == 0xfffe || c == 0xffff)
            return FALSE;
    }
    return !*text || (text[0] != ' ' && text[strlen(text) - 1] != ' ');
}

static void
addElement(GString *out, const char *indent, const char *name, const char *text)
{
    g_autofree char *escaped = g_markup_escape_text(text, -1);

    g_string_append_printf(out, "%s<%s>%s</%s>\n", indent, name, escaped, name);
}

static void
addAttribute(GString *out, const char *name, const char *text)
{
    g_autofree char *escaped = NULL;

    if (!text || !isPlainText(text))
        return;
    escaped = g_markup_escape_text(text, -1);
    g_string_append_printf(out, " %s='%s'", name, escaped);
}

/* libvirt names files after domains: no slash, no control characters, not empty, not "." or "..".
 */
static char *
makeName(const char *name)
{
    g_autofree char *valid = g_utf8_make_valid(name ? name : "", -1);
    GString *out = g_string_new(NULL);

    for (const char *p = valid; *p; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);
        gboolean bad = c == '/' || g_unichar_iscntrl(c) || c == 0xfffe || c == 0xffff;

        g_string_append_unichar(out, bad ? '_' : c);
    }
    g_strstrip(out->str);
    out->len = strlen(out->str);
    if (out->len == 0 || g_str_equal(out->str, ".") || g_str_equal(out->str, ".."))
        g_string_assign(out, "vm");
    return g_string_free(out, FALSE);
}

static void
addRecordedCommand(GString *out, char *const *args)
{
    g_string_append(out, "  <metadata>\n    <vsp:qemu xmlns:vsp='" VSP_XML_NAMESPACE "'>\n");
    for (; *args; args++) {
        if (isPlainText(*args)) {
            addElement(out, "      ", "vsp:arg", *args);
        } else {
            g_autofree char *base64 = g_base64_encode((const guchar *)*args, strlen(*args));

            g_string_append_printf(out, "      <vsp:arg encoding='base64'>%s</vsp:arg>\n", base64);
        }
    }
    g_string_append(out, "    </vsp:qemu>\n  </metadata>\n");
}

char *
vspDomainXmlFormat(const vspDomainXml *domain)
{
    GString *out = g_string_new(NULL);
    g_autofree char *name = makeName(domain->name);
    g_autofree char *uuid = NULL;

    /* Without one, each reader would make up another. */
    uuid = domain->uuid && g_uuid_string_is_valid(domain->uuid) ? g_strdup(domain->uuid)
                                                                : g_uuid_string_random();
    g_string_append_printf(out, "<domain type='%s'>\n", domain->kvm ? "kvm" : "qemu");
    addElement(out, "  ", "name", name);
    addElement(out, "  ", "uuid", uuid);
    if (domain->recordedCommand && domain->recordedCommand[0])
        addRecordedCommand(out, domain->recordedCommand);
    /* Rounded up, as libvirt does: memory that is there must not be missing in the description. */
    g_string_append_printf(out, "  <memory unit='KiB'>%" G_GUINT64_FORMAT "</memory>\n",
                           domain->memory / 1024 + (domain->memory % 1024 ? 1 : 0));
    g_string_append_printf(out, "  <vcpu>%u</vcpu>\n", MAX(domain->vcpus, 1));
    g_string_append(out, "  <os>\n    <type");
    addAttribute(out, "arch", domain->arch);
    addAttribute(out, "machine", domain->machine);
    g_string_append(out, ">hvm</type>\n  </os>\n  <devices>\n");
    if (domain->emulator && isPlainText(domain->emulator))
        addElement(out, "    ", "emulator", domain->emulator);
    g_string_append(out, "  </devices>\n</domain>\n");
    return g_string_free(out, FALSE);
}

void
vspDomainXmlFree(vspDomainXml *domain)
{
    if (!domain)
        return;
    g_free(domain->name);
    g_free(domain->uuid);
    g_free(domain->arch);
    g_free(domain->machine);
    g_free(domain->emulator);
    g_strfreev(domain->recordedCommand);
    g_free(domain);
}
