/*
 * vspxmlsecrets.h: domain XML without the passwords in it
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_XMLSECRETS_H
#define VSP_XMLSECRETS_H

#include <glib.h>

/*
 * @xml without passwords, every other byte as it was; @hidden (nullable) is how many there were.
 *
 * Left out are the attributes and the texts of elements that are called "passwd" or "password"; in
 * QEMU arguments (elements called "arg") the values of "password" and "passwd", and of "data" in
 * secrets, become "*****".
 *
 * @xml is one that vspDomainXmlParse() has taken. Anything else gives some text, too.
 */
char *vspXmlHideSecrets(const char *xml, guint *hidden);

#endif /* VSP_XMLSECRETS_H */
