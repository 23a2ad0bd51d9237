/*
 * rom.S: the test guest as a firmware of its own
 *
 * For `qemu-system-x86_64 -bios`: what boot.S makes, started straight from the reset vector. It boots
 * in a few milliseconds where a real firmware takes seconds under a KVM that emulates it, and no
 * firmware keeps tables at the end of RAM, so that memory is checked to its very last byte.
 *
 * The size of RAM is read from the CMOS, which counts in 64 KiB above 16 MiB: give the guest more
 * than 16 MiB. The parameters are at offset 4, as in the boot sector.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
        .set    sector, 0x7c00
        .set    sized, sector + 16      /* boot.S has its second entry there */

        .code16
        .incbin "boot.img"
        .org    1024
start:
        cli
        cld
        movw    %cs, %ax
        movw    %ax, %ds
        xorw    %ax, %ax
        movw    %ax, %es
        movw    %ax, %ss
        movw    $sector, %sp
        xorw    %si, %si
        movw    $sector, %di
        movw    $1024 / 4, %cx
        rep     movsl

        movb    $0x35, %al
        outb    %al, $0x70
        inb     $0x71, %al
        movb    %al, %ah
        movb    $0x34, %al
        outb    %al, $0x70
        inb     $0x71, %al
        movzwl  %ax, %ebp
        shll    $16, %ebp
        addl    $0x1000000, %ebp

        xorw    %ax, %ax
        movw    %ax, %ds
        ljmp    $0, $sized

        .org    0xfff0
        ljmp    $0xf000, $1024          /* `start`, in the copy below 1 MiB */
        .org    0x10000
