/*
 * test-xmlsecrets.c: which passwords are hidden, and that nothing else is
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "testutil.h"
#include "vspxmlsecrets.h"

static const struct {
    const char *xml;
    const char *shown;
    guint hidden;
} cases[] = {
    { "<domain/>", "<domain/>", 0 },
    { "", "", 0 },
    { "<g type='vnc' passwd='s' port='1'/>", "<g type='vnc' port='1'/>", 1 },
    { "<g passwd = \"a>b\" passwdValidTo='x'>t</g>", "<g passwdValidTo='x'>t</g>", 1 },
    { "<g  a='passwd=1'/>", "<g  a='passwd=1'/>", 0 },
    { "<password>s</password><p>t</p>", "<password></password><p>t</p>", 1 },
    { "<password/>t", "<password/>t", 0 },
    { "<x:passwd>\n <![CDATA[s]]>\n</x:passwd>", "<x:passwd>\n <![CDATA[]]>\n</x:passwd>", 1 },
    { "<!-- <g passwd='s'> --><g/>", "<!-- <g passwd='s'> --><g/>", 0 },
    { "<?passwd passwd='s'?>", "<?passwd passwd='s'?>", 0 },
    { "<v:arg>port=1,password=a,,b,tls=on</v:arg>", "<v:arg>port=1,password=*****,tls=on</v:arg>",
      1 },
    { "<v:arg>secret,id=a,data=xyz</v:arg>", "<v:arg>secret,id=a,data=*****</v:arg>", 1 },
    { "<v:arg>pty,data=xyz</v:arg>", "<v:arg>pty,data=xyz</v:arg>", 0 },
    { "<v:arg>password-secret=id,nopassword=1</v:arg>",
      "<v:arg>password-secret=id,nopassword=1</v:arg>", 0 },
    { "<v:arg>{\"qom-type\": \"secret\", \"data\" : \"a\\\"b,c\", \"x\":1}</v:arg>",
      "<v:arg>{\"qom-type\": \"secret\", \"data\" : \"*****\", \"x\":1}</v:arg>", 1 },
    { "<v:arg>{&quot;password&quot;:&quot;x&quot;}</v:arg>",
      "<v:arg>{&quot;password&quot;:&quot;*****&quot;}</v:arg>", 1 },
    { "<q:arg value='spice,password=s'/><t>password=s</t>",
      "<q:arg value='spice,password=*****'/><t>password=s</t>", 1 },
    /* "password=s" */
    { "<v:arg encoding='base64'>cGFzc3dvcmQ9cw==</v:arg>", "<v:arg encoding='base64'>*****</v:arg>",
      1 },
    { "<v:arg encoding='base64'>YQpi</v:arg>", "<v:arg encoding='base64'>YQpi</v:arg>", 0 },
    { "<v:arg>password=</v:arg>", "<v:arg>password=*****</v:arg>", 1 },
};

static void
testCases(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        guint hidden = 99;
        g_autofree char *shown = vspXmlHideSecrets(cases[i].xml, &hidden);

        g_assert_cmpstr(shown, ==, cases[i].shown);
        g_assert_cmpuint(hidden, ==, cases[i].hidden);
    }
}

/* What is not well-formed does no harm: every beginning of every case, and nothing is made up. */
static void
testCut(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (gsize len = 0; len < strlen(cases[i].xml); len++) {
            g_autofree char *xml = g_strndup(cases[i].xml, len);
            g_autofree char *shown = vspXmlHideSecrets(xml, NULL);

            g_assert_cmpuint(strlen(shown), <=, len + 5);
        }
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/xmlsecrets/cases", testCases);
    g_test_add_func("/xmlsecrets/cut", testCut);
    return g_test_run();
}
