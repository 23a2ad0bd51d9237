/*
 * vspvmoptions.c: how to save, restore or dump
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "vspvmoptionspriv.h"

vspVmOptions *
vspVmOptionsNew(void)
{
    vspVmOptions *options = g_new0(vspVmOptions, 1);

    options->wrapper = vspFileWrapperOptionsNew();
    options->dumpFormat = g_strdup("elf");
    options->digest = TRUE;
    return options;
}

void
vspVmOptionsFree(vspVmOptions *options)
{
    if (!options)
        return;
    vspFileWrapperOptionsFree(options->wrapper);
    g_free(options->domainXml);
    g_free(options->dumpFormat);
    g_free(options);
}

void
vspVmOptionsSetWrapper(vspVmOptions *options, const vspFileWrapperOptions *wrapper)
{
    vspFileWrapperOptions *copy =
        wrapper ? vspFileWrapperOptionsCopy(wrapper) : vspFileWrapperOptionsNew();

    vspFileWrapperOptionsFree(options->wrapper);
    options->wrapper = copy;
}

void
vspVmOptionsSetRunState(vspVmOptions *options, vspRunState state)
{
    options->runState = state;
}

void
vspVmOptionsSetKeepPaused(vspVmOptions *options, gboolean keep)
{
    options->keepPaused = keep;
}

void
vspVmOptionsSetOverwrite(vspVmOptions *options, gboolean overwrite)
{
    options->overwrite = overwrite;
}

void
vspVmOptionsSetDomainXml(vspVmOptions *options, const char *xml)
{
    g_free(options->domainXml);
    options->domainXml = g_strdup(xml);
}

void
vspVmOptionsSetDigest(vspVmOptions *options, gboolean digest)
{
    options->digest = digest;
}

void
vspVmOptionsSetDumpFormat(vspVmOptions *options, const char *format)
{
    g_free(options->dumpFormat);
    options->dumpFormat = g_strdup(format ? format : "elf");
}

void
vspVmOptionsSetProgress(vspVmOptions *options, vspProgressFunc func, gpointer opaque)
{
    options->progress = func;
    options->progressOpaque = opaque;
}

void
vspVmOptionsSetNotice(vspVmOptions *options, vspNoticeFunc func, gpointer opaque)
{
    options->notice = func;
    options->noticeOpaque = opaque;
}
