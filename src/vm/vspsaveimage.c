/*
 * vspsaveimage.c: the save image as an object: what is known of one, and its report
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "vspsaveimagepriv.h"
#include "vspxmlsecrets.h"

void
vspSaveImageNotice(vspSaveImage *image, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_ptr_array_add(image->notices, g_strdup_vprintf(format, args));
    va_end(args);
}

void
vspSaveImageFree(vspSaveImage *image)
{
    if (!image)
        return;
    g_free(image->name);
    g_free(image->xml);
    g_free(image->cookie);
    vspDomainXmlFree(image->domain);
    g_ptr_array_unref(image->notices);
    g_free(image);
}

gboolean
vspSaveImageIsComplete(const vspSaveImage *image)
{
    return image->complete;
}

guint32
vspSaveImageGetVersion(const vspSaveImage *image)
{
    return image->header.version;
}

gboolean
vspSaveImageIsByteSwapped(const vspSaveImage *image)
{
    return image->swapped;
}

gboolean
vspSaveImageWasRunning(const vspSaveImage *image)
{
    return image->header.wasRunning != 0;
}

guint32
vspSaveImageGetFormat(const vspSaveImage *image)
{
    return image->format;
}

const char *
vspSaveImageGetXml(const vspSaveImage *image)
{
    return image->xml;
}

char *
vspSaveImageGetPublicXml(const vspSaveImage *image, guint *hidden)
{
    return vspXmlHideSecrets(image->xml, hidden);
}

const char *
vspSaveImageGetCookie(const vspSaveImage *image)
{
    return image->cookie;
}

guint64
vspSaveImageGetPayloadOffset(const vspSaveImage *image)
{
    return VSP_SAVE_IMAGE_HEADER_SIZE + (guint64)image->header.dataLen;
}

guint64
vspSaveImageGetPayloadLength(const vspSaveImage *image)
{
    return image->payloadLength;
}

vspSaveImageSeal
vspSaveImageGetSeal(const vspSaveImage *image)
{
    return image->seal;
}

const char *
vspSaveImageGetDomainName(const vspSaveImage *image)
{
    return image->domain->name;
}

const char *
vspSaveImageGetDomainUuid(const vspSaveImage *image)
{
    return image->domain->uuid;
}

guint64
vspSaveImageGetDomainMemory(const vspSaveImage *image)
{
    return image->domain->memory;
}

const char *const *
vspSaveImageGetRecordedCommand(const vspSaveImage *image)
{
    return (const char *const *)image->domain->recordedCommand;
}

const char *const *
vspSaveImageGetNotices(const vspSaveImage *image)
{
    return (const char *const *)image->notices->pdata;
}

const guint8 *
vspSaveImageGetDigest(const vspSaveImage *image)
{
    return image->hasDigest ? image->digest : NULL;
}

gboolean
vspSaveImageIsPayloadPlausible(const vspSaveImage *image)
{
    return image->payloadPlausible;
}

const char *
vspSaveImageFormatToString(guint32 format)
{
    static const char *const names[] = {
        [VSP_SAVE_IMAGE_FORMAT_RAW] = "raw",       [VSP_SAVE_IMAGE_FORMAT_GZIP] = "gzip",
        [VSP_SAVE_IMAGE_FORMAT_BZIP2] = "bzip2",   [VSP_SAVE_IMAGE_FORMAT_XZ] = "xz",
        [VSP_SAVE_IMAGE_FORMAT_LZOP] = "lzop",     [VSP_SAVE_IMAGE_FORMAT_ZSTD] = "zstd",
        [VSP_SAVE_IMAGE_FORMAT_SPARSE] = "sparse",
    };

    return format < G_N_ELEMENTS(names) ? names[format] : NULL;
}

static void
addString(GVariantBuilder *builder, const char *key, const char *text)
{
    g_autofree char *valid = NULL;

    if (!text)
        return;
    valid = g_utf8_make_valid(text, -1);
    g_variant_builder_add(builder, "{sv}", key, g_variant_new_string(valid));
}

static void
addStrings(GVariantBuilder *builder, const char *key, const char *const *texts)
{
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE_STRING_ARRAY);
    for (; *texts; texts++) {
        g_autofree char *valid = g_utf8_make_valid(*texts, -1);

        g_variant_builder_add(&list, "s", valid);
    }
    g_variant_builder_add(builder, "{sv}", key, g_variant_builder_end(&list));
}

static void
addSize(GVariantBuilder *builder, const char *key, guint64 size)
{
    g_variant_builder_add(builder, "{sv}", key, g_variant_new_uint64(size));
}

static void
addBoolean(GVariantBuilder *builder, const char *key, gboolean truth)
{
    g_variant_builder_add(builder, "{sv}", key, g_variant_new_boolean(truth));
}

static void
addHeader(GVariantBuilder *builder, const vspSaveImage *image)
{
    gboolean big = (G_BYTE_ORDER == G_BIG_ENDIAN) != (image->swapped != FALSE);
    const char *format = vspSaveImageFormatToString(image->format);

    g_variant_builder_add(builder, "{sv}", "version", g_variant_new_uint32(image->header.version));
    addString(builder, "byte-order", big ? "big" : "little");
    addBoolean(builder, "complete", image->complete);
    addBoolean(builder, "was-running", vspSaveImageWasRunning(image));
    addString(builder, "format", format ? format : "unknown");
    g_variant_builder_add(builder, "{sv}", "format-number",
                          g_variant_new_uint32(image->header.format));
}

/* Header, XML, cookie, padding and payload: one begins where the other ends. */
static void
addLayout(GVariantBuilder *builder, const vspSaveImage *image)
{
    guint64 offset = 0;

    addSize(builder, "file-size", image->fileSize);
    addBoolean(builder, "block-device", image->blockDevice);
    addSize(builder, "header-size", VSP_SAVE_IMAGE_HEADER_SIZE);
    addSize(builder, "data-size", image->header.dataLen);
    offset += VSP_SAVE_IMAGE_HEADER_SIZE;
    addSize(builder, "xml-offset", offset);
    addSize(builder, "xml-size", image->xmlSize);
    offset += image->xmlSize;
    if (image->cookie)
        addSize(builder, "cookie-offset", offset);
    addSize(builder, "cookie-size", image->cookieSize);
    offset += image->cookieSize;
    addSize(builder, "padding-offset", offset);
    addSize(builder, "padding-size", vspSaveImageGetPayloadOffset(image) - offset);
    addSize(builder, "payload-offset", vspSaveImageGetPayloadOffset(image));
    addSize(builder, "payload-size", image->payloadLength);
    addBoolean(builder, "payload-plausible", image->payloadPlausible);
}

static void
addSeal(GVariantBuilder *builder, const vspSaveImage *image)
{
    static const char *const words[] = {
        [VSP_SAVE_IMAGE_SEAL_NONE] = "none",
        [VSP_SAVE_IMAGE_SEAL_VALID] = "valid",
        [VSP_SAVE_IMAGE_SEAL_IGNORED] = "ignored",
    };

    addString(builder, "seal", words[image->seal]);
    if (image->hasDigest) {
        GString *digits = g_string_new(NULL);

        for (gsize i = 0; i < sizeof(image->digest); i++)
            g_string_append_printf(digits, "%02x", image->digest[i]);
        addString(builder, "payload-digest", digits->str);
        g_string_free(digits, TRUE);
    }
}

static void
addDomain(GVariantBuilder *builder, const vspSaveImage *image)
{
    const vspDomainXml *domain = image->domain;

    addString(builder, "domain-name", domain->name);
    addString(builder, "domain-uuid", domain->uuid);
    if (domain->memory)
        addSize(builder, "domain-memory", domain->memory);
    if (domain->recordedCommand)
        addStrings(builder, "recorded-command", vspSaveImageGetRecordedCommand(image));
}

GVariant *
vspSaveImageGetReport(const vspSaveImage *image)
{
    GVariantBuilder builder;

    g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
    addString(&builder, "file", image->name);
    addHeader(&builder, image);
    addLayout(&builder, image);
    addSeal(&builder, image);
    addDomain(&builder, image);
    addStrings(&builder, "notices", vspSaveImageGetNotices(image));
    return g_variant_ref_sink(g_variant_builder_end(&builder));
}
