/*
 * test-xml.c: domain XML, as found in images of friends and enemies
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>
#include <glib/gstdio.h>
#include <unistd.h>

#include <vmspool/vsp-error.h>
#include "testutil.h"
#include "vspxml.h"

static vspDomainXml *
parse(const char *xml)
{
    g_autoptr(GError) error = NULL;
    vspDomainXml *domain = vspDomainXmlParse(xml, strlen(xml), &error);

    g_assert_no_error(error);
    g_assert_nonnull(domain);
    return domain;
}

static void
assertRefused(const char *xml, gsize len, const char *why)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(vspDomainXml) domain = vspDomainXmlParse(xml, len, &error);

    g_assert_null(domain);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT);
    if (!strstr(error->message, why))
        g_error("\"%s\" does not say \"%s\"", error->message, why);
}

static void
testFields(void)
{
    g_autoptr(vspDomainXml) domain =
        parse("<?xml version='1.0' encoding='UTF-8'?>\n"
              "<!-- a comment -->\n"
              "<domain type='kvm' id='3' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n"
              "  <name>a&amp;b &lt;\303\244&#x42;<![CDATA[]<]]><!-- not me --></name>\n"
              "  <title><name>not this</name></title>\n"
              "  <uuid>\n    2ec0b2a6-5a0c-4a4f-9f9c-3d8a8a2f6b11\n  </uuid>\n"
              "  <memory unit='MiB'>512</memory>\n"
              "  <currentMemory unit='KiB'>1</currentMemory>\n"
              "  <vcpu placement='static' current='1'>4</vcpu>\n"
              "  <os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os>\n"
              "  <devices><emulator>/usr/bin/qemu-system-x86_64</emulator>\n"
              "    <disk><name>not this either</name></disk></devices>\n"
              "  <name>nor the second</name>\n"
              "  <x:uuid>no</x:uuid>\n"
              "  <qemu:commandline><qemu:arg value='-s'/></qemu:commandline>\n"
              "</domain>\n");

    g_assert_cmpstr(domain->name, ==, "a&b <\303\244B]<");
    g_assert_cmpstr(domain->uuid, ==, "2ec0b2a6-5a0c-4a4f-9f9c-3d8a8a2f6b11");
    g_assert_cmpuint(domain->memory, ==, 512 * 1024 * 1024);
    g_assert_cmpuint(domain->vcpus, ==, 4);
    g_assert_cmpstr(domain->arch, ==, "x86_64");
    g_assert_cmpstr(domain->machine, ==, "pc-q35-7.2");
    g_assert_cmpstr(domain->emulator, ==, "/usr/bin/qemu-system-x86_64");
    g_assert_true(domain->kvm);
    g_assert_null(domain->recordedCommand);
}

static void
testNothingSaid(void)
{
    g_autoptr(vspDomainXml) domain = parse("<domain/>");

    g_assert_null(domain->name);
    g_assert_null(domain->uuid);
    g_assert_null(domain->emulator);
    g_assert_cmpuint(domain->memory, ==, 0);
    g_assert_cmpuint(domain->vcpus, ==, 0);
    g_assert_false(domain->kvm);
}

static void
testMemory(void)
{
    static const struct {
        const char *xml;
        guint64 bytes;
    } rows[] = {
        { "<memory>1048576</memory>", 1ULL << 30 },
        { "<memory unit=''>1</memory>", 1024 },
        { "<memory unit='b'>1000</memory>", 1000 },
        { "<memory unit='kb'>1</memory>", 1000 },
        { "<memory unit='K'> 1 </memory>", 1024 },
        { "<memory unit='GiB'>8</memory>", 8ULL << 30 },
        { "<memory unit='TB'>1</memory>", 1000000000000ULL },
        { "<memory unit='EiB'>15</memory>", 15ULL << 60 },
        { "<memory unit='EiB'>16</memory>", 0 },
        { "<memory unit='bogus'>16</memory>", 0 },
        { "<memory>18446744073709551615</memory>", 0 },
        { "<memory>99999999999999999999999</memory>", 0 },
        { "<memory>-1</memory>", 0 },
        { "<memory>1x</memory>", 0 },
        { "<memory></memory>", 0 },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *xml = g_strconcat("<domain>", rows[i].xml, "</domain>", NULL);
        g_autoptr(vspDomainXml) domain = parse(xml);

        g_assert_cmpuint(domain->memory, ==, rows[i].bytes);
    }
}

static void
testRefused(void)
{
    static const struct {
        const char *xml;
        const char *why;
    } rows[] = {
        { "", "empty" },
        { "junk", "not well-formed" },
        { "<domain>", "not well-formed" },
        { "<domain></name>", "not well-formed" },
        { "<domain/><domain/>", "not well-formed" },
        { "<domain a='1' a='2'/>", "not well-formed" },
        { "<domain>\001</domain>", "not well-formed" },
        { "<domain>&undefined;</domain>", "not well-formed" },
        { "<domain a='&undefined;'/>", "not well-formed" },
        { "<network/>", "\"network\"" },
        { "<domain xmlns='urn:other'/>", "not a domain" },
        { "<x:domain/>", "not a domain" },
        { "<domain><name>\377</name></domain>", "not UTF-8" },
        { "\377\376<domain/>", "not UTF-8" },
        { "<!DOCTYPE domain><domain/>", "document type" },
        { "<!DOCTYPE domain SYSTEM 'http://localhost:1/x.dtd'><domain/>", "document type" },
        { "<!DOCTYPE d [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><domain><name>&x;</name></domain>",
          "document type" },
        { "<!DOCTYPE d [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>"
          "<!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;'>]><domain><name>&c;</name></domain>",
          "document type" },
        { "<!DOCTYPE d [<!ENTITY % p SYSTEM 'file:///etc/passwd'> %p;]><domain/>",
          "document type" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        assertRefused(rows[i].xml, strlen(rows[i].xml), rows[i].why);
    assertRefused("<domain>\0</domain>", 18, "not UTF-8");
    assertRefused("<\0d\0/\0>\0", 8, "not UTF-8");
}

/* libxml2 prints what nobody listens to: bad text must leave stderr empty. */
static void
testSilent(void)
{
    if (g_test_subprocess()) {
        testRefused();
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("");
}

static void
testDepth(void)
{
    static const gsize depths[] = { 256, 257, 100000 };

    for (gsize i = 0; i < G_N_ELEMENTS(depths); i++) {
        g_autoptr(GString) xml = g_string_new("<domain>");

        for (gsize n = 1; n < depths[i]; n++)
            g_string_append(xml, "<x>");
        for (gsize n = 1; n < depths[i]; n++)
            g_string_append(xml, "</x>");
        g_string_append(xml, "</domain>");
        if (depths[i] <= 256) {
            g_autoptr(vspDomainXml) domain = parse(xml->str);

            g_assert_nonnull(domain);
        } else {
            assertRefused(xml->str, xml->len, "nested");
        }
    }
}

static void
testSize(void)
{
    g_autoptr(GString) xml = g_string_new("<domain><name>x</name>");

    while (xml->len < 16 * 1024 * 1024 - strlen("</domain>"))
        g_string_append_c(xml, ' ');
    g_string_append(xml, "</domain>");
    vspDomainXmlFree(parse(xml->str));
    g_string_append_c(xml, ' ');
    assertRefused(xml->str, xml->len, "limit");
}

static void
assertCommand(const char *inside, const char *const *command)
{
    g_autofree char *xml = g_strdup_printf("<domain><metadata>%s</metadata></domain>", inside);
    g_autoptr(vspDomainXml) domain = parse(xml);

    if (!command) {
        g_assert_null(domain->recordedCommand);
        return;
    }
    g_assert_nonnull(domain->recordedCommand);
    g_assert_cmpuint(g_strv_length(domain->recordedCommand), ==, g_strv_length((char **)command));
    for (gsize i = 0; command[i]; i++)
        g_assert_cmpstr(domain->recordedCommand[i], ==, command[i]);
}

#define OPEN "<v:qemu xmlns:v='" VSP_XML_NAMESPACE "'>"

/* All of it, or none: half a command is worse than no command. */
static void
testRecordedCommand(void)
{
    static const char *const two[] = { "qemu", "-S", NULL };
    static const char *const odd[] = { "a\nb", "", NULL };

    assertCommand(OPEN "<v:arg>qemu</v:arg><v:arg>-S</v:arg></v:qemu>", two);
    assertCommand("<qemu xmlns='" VSP_XML_NAMESPACE "'><arg>qemu</arg> <arg>-S</arg></qemu>", two);
    assertCommand(OPEN "<v:arg encoding='base64'>YQpi</v:arg><v:arg/></v:qemu>", odd);
    assertCommand(OPEN "</v:qemu>", NULL);
    assertCommand("<qemu><arg>qemu</arg></qemu>", NULL);
    assertCommand("<v:qemu xmlns:v='urn:other'><v:arg>qemu</v:arg></v:qemu>", NULL);
    assertCommand(OPEN "<arg>qemu</arg></v:qemu>", NULL);
    assertCommand("<x>" OPEN "<v:arg>qemu</v:arg></v:qemu></x>", NULL);
    assertCommand(OPEN "<v:arg>a</v:arg><v:arg encoding='rot13'>b</v:arg></v:qemu>", NULL);
    assertCommand(OPEN "<v:arg>a</v:arg><v:arg encoding='base64'>YQBi</v:arg></v:qemu>", NULL);
    assertCommand(OPEN "<v:arg>a</v:arg><v:arg encoding='base64'>!</v:arg></v:qemu>", NULL);
    assertCommand(OPEN "<v:arg>a</v:arg></v:qemu>" OPEN "<v:arg>b</v:arg></v:qemu>", NULL);
}

static void
testRoundTrip(void)
{
    char *command[] = { (char *)"/usr/bin/qemu-system-x86_64",
                        (char *)"",
                        (char *)"-name",
                        (char *)"a b",
                        (char *)" 1",
                        (char *)"x\ny\r",
                        (char *)"\377\376",
                        (char *)"<&'\">]]>",
                        (char *)"\033[0m",
                        (char *)"\302\205\303\244",
                        (char *)"{\"driver\":\"raw\"}",
                        (char *)"\357\277\276",
                        NULL };
    vspDomainXml domain = { .name = (char *)"guest <1>",
                            .uuid = (char *)"2ec0b2a6-5a0c-4a4f-9f9c-3d8a8a2f6b11",
                            .memory = 2ULL << 30,
                            .vcpus = 2,
                            .arch = (char *)"x86_64",
                            .machine = (char *)"pc-i440fx-7.2",
                            .emulator = (char *)"/opt/a&b/qemu",
                            .kvm = TRUE,
                            .recordedCommand = command };
    g_autofree char *xml = vspDomainXmlFormat(&domain);
    g_autoptr(vspDomainXml) back = parse(xml);

    g_assert_cmpstr(back->name, ==, domain.name);
    g_assert_cmpstr(back->uuid, ==, domain.uuid);
    g_assert_cmpuint(back->memory, ==, domain.memory);
    g_assert_cmpuint(back->vcpus, ==, domain.vcpus);
    g_assert_cmpstr(back->arch, ==, domain.arch);
    g_assert_cmpstr(back->machine, ==, domain.machine);
    g_assert_cmpstr(back->emulator, ==, domain.emulator);
    g_assert_true(back->kvm);
    g_assert_cmpuint(g_strv_length(back->recordedCommand), ==, g_strv_length(command));
    for (gsize i = 0; command[i]; i++)
        g_assert_cmpstr(back->recordedCommand[i], ==, command[i]);
}

static void
testFormatGaps(void)
{
    static const struct {
        const char *name;
        const char *written;
    } rows[] = {
        { NULL, "vm" },   { "", "vm" },           { " ", "vm" },        { "..", "vm" },
        { "a/b", "a_b" }, { "a\nb\033", "a_b_" }, { "\303\244", NULL }, { " padded ", "padded" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        vspDomainXml domain = { .name = (char *)rows[i].name, .memory = 1025 };
        g_autofree char *xml = vspDomainXmlFormat(&domain);
        g_autoptr(vspDomainXml) back = parse(xml);

        g_assert_cmpstr(back->name, ==, rows[i].written ? rows[i].written : rows[i].name);
        g_assert_true(g_uuid_string_is_valid(back->uuid));
        g_assert_cmpuint(back->memory, ==, 2048);
        g_assert_cmpuint(back->vcpus, ==, 1);
        g_assert_null(back->recordedCommand);
    }
}

/* What comes from a process's command line may be any bytes; the XML stays one. */
static void
testFormatBadTexts(void)
{
    vspDomainXml domain = { .name = (char *)"\377",
                            .uuid = (char *)"none",
                            .memory = 4096,
                            .arch = (char *)"\001",
                            .machine = (char *)"a\nb",
                            .emulator = (char *)"/opt/\377/qemu" };
    g_autofree char *xml = vspDomainXmlFormat(&domain);
    g_autoptr(vspDomainXml) back = parse(xml);

    g_assert_nonnull(back->name);
    g_assert_true(g_uuid_string_is_valid(back->uuid));
    g_assert_null(back->arch);
    g_assert_null(back->machine);
    g_assert_null(back->emulator);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    g_test_add_func("/xml/fields", testFields);
    g_test_add_func("/xml/nothing-said", testNothingSaid);
    g_test_add_func("/xml/memory", testMemory);
    g_test_add_func("/xml/refused", testRefused);
    g_test_add_func("/xml/silent", testSilent);
    g_test_add_func("/xml/depth", testDepth);
    g_test_add_func("/xml/size", testSize);
    g_test_add_func("/xml/recorded-command", testRecordedCommand);
    g_test_add_func("/xml/round-trip", testRoundTrip);
    g_test_add_func("/xml/format-gaps", testFormatGaps);
    g_test_add_func("/xml/format-bad-texts", testFormatBadTexts);
    return vspTestRun();
}
