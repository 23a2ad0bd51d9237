/*
 * vspxmlsecrets.c: domain XML without the passwords in it
 *
 * A scan over the text and not a parse: what is shown must be the stored text, byte for byte, but
 * for what is hidden. It relies on the text being well-formed and without a document type only for
 * the result, not for its own safety; every step goes forward.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "vspxmlsecrets.h"

#define BLANKS " \t\r\n"
#define MASK "*****"

/* What the text inside the innermost element is. */
typedef enum {
    CONTENT_PLAIN,
    CONTENT_SECRET,
    CONTENT_ARGUMENT,
    CONTENT_BASE64, /* an argument */
} content;

typedef struct {
    const char *at;
    GString *out;
    content content;
    guint hidden;
} scanner;

/* Whether the @len bytes at @name are @word, with any prefix of a namespace. */
static gboolean
isName(const char *name, gsize len, const char *word)
{
    const char *colon = memchr(name, ':', len);

    if (colon) {
        len -= colon + 1 - name;
        name = colon + 1;
    }
    return len == strlen(word) && memcmp(name, word, len) == 0;
}

static gboolean
isSecretName(const char *name, gsize len)
{
    return isName(name, len, "passwd") || isName(name, len, "password");
}

/* Passes what is to stay. */
static void
keep(scanner *self, const char *to)
{
    g_string_append_len(self->out, self->at, to - self->at);
    self->at = to;
}

/* Behind the next @word, or the end. */
static const char *
behind(const char *from, const char *word)
{
    const char *found = strstr(from, word);

    return found ? found + strlen(word) : from + strlen(from);
}

/* The quotation mark at @text, as it may be written in XML; 0 if there is none. */
static gsize
quoteLength(const char *text, const char *end)
{
    static const char *const quotes[] = { "\"", "&quot;", "&#34;" };

    for (gsize i = 0; i < G_N_ELEMENTS(quotes); i++) {
        gsize len = strlen(quotes[i]);

        if ((gsize)(end - text) >= len && memcmp(text, quotes[i], len) == 0)
            return len;
    }
    return 0;
}

/* Where the value that begins at @value ends: in JSON at its quotation mark, else at a comma that
 * is not doubled. */
static const char *
valueEnd(const char *value, const char *end, gboolean json)
{
    const char *p = value;

    while (p < end) {
        if (json && *p == '\\' && p + 1 < end) {
            p += 2;
            continue;
        }
        if (json && quoteLength(p, end))
            break;
        if (!json && *p == ',') {
            if (p + 1 == end || p[1] != ',')
                break;
            p++;
        }
        p++;
    }
    return p;
}

/* Where the value of the key that ends at @key begins: behind "=", or in JSON behind the quotation
 * mark of a text. NULL if there is none. */
static const char *
valueBegin(const char *key, const char *end, gboolean *json)
{
    const char *p = key;
    gsize quote;

    *json = FALSE;
    if (p < end && *p == '=')
        return p + 1;
    quote = quoteLength(p, end);
    if (!quote)
        return NULL;
    for (p += quote; p < end && (strchr(BLANKS, *p) || *p == ':'); p++)
        ;
    quote = quoteLength(p, end);
    *json = TRUE;
    return quote ? p + quote : NULL;
}

/* Appends the QEMU argument between @from and @end without its secrets. Returns how many. */
static guint
hideInArgument(GString *out, const char *from, const char *end)
{
    static const char *const keys[] = { "password", "passwd", "data" };
    gboolean isSecret = g_strstr_len(from, end - from, "secret") != NULL;
    const char *kept = from;
    guint hidden = 0;

    for (const char *p = from; p < end; p++) {
        /* Keys begin where a word does. */
        if (p > from && (g_ascii_isalnum(p[-1]) || p[-1] == '-' || p[-1] == '_'))
            continue;
        for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
            gsize len = strlen(keys[i]);
            const char *value;
            gboolean json;

            if ((gsize)(end - p) <= len || memcmp(p, keys[i], len) != 0 ||
                (g_str_equal(keys[i], "data") && !isSecret))
                continue;
            value = valueBegin(p + len, end, &json);
            if (!value)
                continue;
            g_string_append_len(out, kept, value - kept);
            g_string_append(out, MASK);
            kept = valueEnd(value, end, json);
            p = MAX(kept, value) - 1;
            hidden++;
            break;
        }
    }
    g_string_append_len(out, kept, end - kept);
    return hidden;
}

static void
hideInBase64(scanner *self, const char *end)
{
    g_autofree char *text = g_strndup(self->at, end - self->at);
    g_autoptr(GString) decoded = g_string_new(NULL);
    g_autofree guchar *bytes = NULL;
    gsize len = 0;
    guint hidden = 0;

    if (*text) {
        bytes = g_base64_decode(text, &len);
        hidden = hideInArgument(decoded, (const char *)bytes, (const char *)bytes + len);
    }
    if (hidden == 0) {
        keep(self, end);
        return;
    }
    self->hidden += hidden;
    g_string_append(self->out, MASK);
    self->at = end;
}

static gboolean
isBlank(const char *from, const char *end)
{
    for (; from < end; from++) {
        if (!strchr(BLANKS, *from))
            return FALSE;
    }
    return TRUE;
}

/* Text up to @end. */
static void
scanText(scanner *self, const char *end)
{
    switch (self->content) {
    case CONTENT_PLAIN:
        keep(self, end);
        return;
    case CONTENT_SECRET:
        if (isBlank(self->at, end)) {
            keep(self, end);
            return;
        }
        self->hidden++;
        break;
    case CONTENT_ARGUMENT:
        self->hidden += hideInArgument(self->out, self->at, end);
        break;
    case CONTENT_BASE64:
        hideInBase64(self, end);
        break;
    }
    self->at = end;
}

/* One attribute and the blanks before it. FALSE at the end of the tag. */
static gboolean
scanAttribute(scanner *self, gboolean isArgument)
{
    const char *name = self->at + strspn(self->at, BLANKS);
    gsize len = strcspn(name, BLANKS "=/>");
    const char *p = name + len;
    const char *end;

    if (len == 0)
        return FALSE;
    p += strspn(p, BLANKS);
    if (*p != '=')
        return FALSE;
    p++;
    p += strspn(p, BLANKS);
    end = *p == '"' || *p == '\'' ? strchr(p + 1, *p) : NULL;
    if (!end)
        return FALSE;
    if (isSecretName(name, len)) {
        self->hidden++;
    } else if (isArgument && isName(name, len, "value")) {
        keep(self, p + 1);
        self->hidden += hideInArgument(self->out, self->at, end);
        g_string_append_c(self->out, *end);
    } else {
        if (isArgument && isName(name, len, "encoding") && g_str_has_prefix(p + 1, "base64"))
            self->content = CONTENT_BASE64;
        keep(self, end + 1);
    }
    self->at = end + 1;
    return TRUE;
}

static void
scanTag(scanner *self)
{
    const char *name = self->at + 1;
    gsize len = strcspn(name, BLANKS "/>");
    gboolean isArgument = isName(name, len, "arg");

    if (isSecretName(name, len))
        self->content = CONTENT_SECRET;
    else
        self->content = isArgument ? CONTENT_ARGUMENT : CONTENT_PLAIN;
    keep(self, name + len);
    while (scanAttribute(self, isArgument))
        ;
    keep(self, behind(self->at, ">"));
    if (self->out->len >= 2 && self->out->str[self->out->len - 2] == '/')
        self->content = CONTENT_PLAIN;
}

static void
scanCdata(scanner *self)
{
    const char *text = behind(self->at, "[CDATA[");
    const char *end = strstr(text, "]]>");

    if (!end)
        end = text + strlen(text);
    keep(self, text);
    scanText(self, end);
    keep(self, behind(self->at, "]]>"));
}

char *
vspXmlHideSecrets(const char *xml, guint *hidden)
{
    scanner self = { .at = xml, .out = g_string_sized_new(strlen(xml)) };

    while (*self.at) {
        if (*self.at != '<') {
            scanText(&self, self.at + strcspn(self.at, "<"));
        } else if (g_str_has_prefix(self.at, "<!--")) {
            keep(&self, behind(self.at + 4, "-->"));
        } else if (g_str_has_prefix(self.at, "<![CDATA[")) {
            scanCdata(&self);
        } else if (g_str_has_prefix(self.at, "<?")) {
            keep(&self, behind(self.at, "?>"));
        } else if (g_str_has_prefix(self.at, "</")) {
            self.content = CONTENT_PLAIN;
            keep(&self, behind(self.at, ">"));
        } else {
            scanTag(&self);
        }
    }
    if (hidden)
        *hidden = self.hidden;
    return g_string_free(self.out, FALSE);
}
