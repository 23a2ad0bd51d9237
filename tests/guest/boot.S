/*
 * boot.S: the test guest, a boot sector and one more
 *
 * Fills its RAM with a pattern that depends on the address and on a seed, then checks all of it
 * over and over and says so on the debug console (port 0xe9):
 *
 *   boot SEED END      once; both in hex: the pattern's seed, the first byte above what is filled
 *   pass N ok SEED     after each complete check; N is decimal and counts from 1
 *   BAD ADDRESS        for ever, once a word is not what it should be
 *
 * Counter and seed live in RAM. A VM that was saved and restored goes on with the next number and
 * the same seed, with no second "boot", and so proves by itself that its memory survived.
 *
 * Checked: from 1 MiB to the end of the e820 region that starts there. That is all RAM below 4 GiB
 * but the last 128 KiB or so, which hold the firmware's tables. RAM above 4 GiB is not touched: give
 * the guest at most 3 GiB (2.75 GiB on q35), so that it has none.
 *
 * Parameters are at offset 4, for whoever copies the image to patch. verify.c computes the same
 * pattern in C.
 *
 * The first sector is real mode and loads the second, which is long mode in ring 3, with all memory
 * mapped one to one. Plain protected mode would do, but there are hosts (PVM) whose KVM runs only
 * that at full speed and emulates everything else, instruction by instruction.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
        .set    console, 0xe9
        .set    low, 0x100000           /* where the pattern starts */
        .set    scratch, 0x8000         /* one e820 entry */
        .set    tables, 0x10000         /* page tables, 6 pages: the root, one table of four, */
        .set    directory, 0x12000      /* and those four, with 4 GiB of 2 MiB pages */

        .code16
        .globl  _start
_start:
        jmp     real
        .org    4
magic:  .ascii  "VSPG"
share:  .byte   0                       /* of 256 runs of memory, so many are left zero */
shift:  .byte   16                      /* log2 of a run's length in bytes, 12 to 31 */
limit:  .word   0                       /* fill and check up to this MiB only; 0: all */
seed:   .long   0                       /* 0: taken from the time stamp counter */
        .org    16
        jmp     sized                   /* rom.S comes in here, with both sectors and %ebp in place */

real:
        cli
        cld
        xorl    %eax, %eax
        movw    %ax, %ds
        movw    %ax, %es
        movw    %ax, %ss
        movw    $_start, %sp
        ljmp    $0, $1f                 /* some firmware starts us as 07c0:0000 */

1:      movw    $0x0201, %ax            /* read one sector, of the disk in %dl */
        movw    $2, %cx                 /* cylinder 0, sector 2 */
        movb    $0, %dh                 /* head 0 */
        movw    $long, %bx
        int     $0x13
        jc      3f

        xorl    %ebx, %ebx
        movw    $scratch, %di
2:      movl    $0xe820, %eax
        movl    $0x534d4150, %edx       /* "SMAP" */
        movl    $20, %ecx
        int     $0x15
        jc      3f
        cmpl    $low, (%di)
        je      4f
        testl   %ebx, %ebx
        jnz     2b
3:      hlt                             /* nothing can be said yet: the test's limit ends it */
        jmp     3b
4:      movl    8(%di), %ebp
        addl    $low, %ebp              /* %ebp: the end, from here on */

sized:  movzwl  limit, %eax
        shll    $20, %eax
        jz      1f
        cmpl    %ebp, %eax
        ja      1f
        movl    %eax, %ebp
1:      andl    $0xfffff000, %ebp

        movl    seed, %ebx
        testl   %ebx, %ebx
        jnz     1f
        rdtsc
        movl    %eax, %ebx
        orb     $1, %bl
        movl    %ebx, seed

1:      inb     $0x92, %al              /* address line 20 on */
        orb     $2, %al
        andb    $0xfe, %al
        outb    %al, $0x92

        movw    $tables >> 4, %ax
        movw    %ax, %es
        xorw    %di, %di
        xorl    %eax, %eax
        movw    $6 * 1024, %cx
        rep     stosl
        movl    $tables + 0x1007, %es:0
        movl    $directory + 0x0007, %es:0x1000
        movl    $directory + 0x1007, %es:0x1008
        movl    $directory + 0x2007, %es:0x1010
        movl    $directory + 0x3007, %es:0x1018
        movl    $0x87, %eax             /* present, writable, user, 2 MiB */
        movw    $0x2000, %di
1:      movl    %eax, %es:(%di)
        addw    $8, %di
        addl    $0x200000, %eax
        jnc     1b

        movl    $tables, %eax
        movl    %eax, %cr3
        movl    $0x20, %eax             /* PAE */
        movl    %eax, %cr4
        movl    $0xc0000080, %ecx       /* EFER */
        rdmsr
        orw     $0x100, %ax             /* LME */
        wrmsr
        lgdtl   gdtr
        movl    %cr0, %eax
        orl     $0x80000001, %eax       /* PG, PE */
        movl    %eax, %cr0
        ljmp    $8, $long

        .balign 4
gdt:    .quad   0
        .quad   0x00af9a000000ffff      /* 64 bit code */
        .quad   0x00affa000000ffff      /* 64 bit code, ring 3 */
        .quad   0x00cff2000000ffff      /* data, ring 3 */
gdtr:   .word   . - gdt - 1
        .long   gdt

        /* From 446 on is the partition table, which firmware and QEMU look at: it stays empty. */
        .org    446
        .org    510
        .word   0xaa55

        .code64
        /* The eight bytes that belong at %rdi, into %rax. Uses %rdx; %r8 is the seed shifted to the
         * upper half, %r9 and %r10 the two factors. */
        .macro  pattern
        leaq    (%r8, %rdi), %rax
        imulq   %r9, %rax
        movq    %rax, %rdx
        shrq    $32, %rdx
        xorq    %rdx, %rax
        imulq   %r10, %rax
        movq    %rax, %rdx
        shrq    $29, %rdx
        xorq    %rdx, %rax
        .endm

long:
        movl    $_start, %esp
        pushq   $24 | 3
        pushq   $_start
        pushq   $0x3002
        pushq   $16 | 3
        pushq   $user
        iretq
user:
        movw    $24 | 3, %ax
        movw    %ax, %ds
        movw    %ax, %es
        movl    %ebp, %ebp              /* the upper halves are undefined after the switch */
        movl    %ebx, %r8d
        shlq    $32, %r8
        movabsq $0x9e3779b97f4a7c15, %r9
        movabsq $0xbf58476d1ce4e5b9, %r10

        movl    $boot_text, %esi
        call    puts
        movl    %ebx, %eax
        call    put_hex
        movb    $' ', %al
        outb    %al, $console
        movl    %ebp, %eax
        call    put_hex
        call    newline

        movl    $low, %edi
fill:
        call    page
        jc      2f
1:      pattern
        movq    %rax, (%rdi)
        addq    $8, %rdi
        decl    %ecx
        jnz     1b
        jmp     4f
        /* Fresh RAM is zero. It is only written where the firmware left something, so that zero pages
         * stay pages that were never touched. */
2:      cmpq    $0, (%rdi)
        je      3f
        movq    $0, (%rdi)
3:      addq    $8, %rdi
        decl    %ecx
        jnz     2b
4:      cmpq    %rbp, %rdi
        jb      fill

check:
        movl    $low, %edi
5:      call    page
        jc      7f
6:      pattern
        cmpq    %rax, (%rdi)
        jne     bad
        addq    $8, %rdi
        decl    %ecx
        jnz     6b
        jmp     8f
7:      cmpq    $0, (%rdi)
        jne     bad
        addq    $8, %rdi
        decl    %ecx
        jnz     7b
8:      cmpq    %rbp, %rdi
        jb      5b

        incl    counter
        movl    $pass_text, %esi
        call    puts
        movl    counter, %eax
        call    put_decimal
        movl    $ok_text, %esi
        call    puts
        movl    seed, %eax
        call    put_hex
        call    newline
        jmp     check

bad:
        movl    $bad_text, %esi
        call    puts
        movl    %edi, %eax
        call    put_hex
        call    newline
        movl    $1 << 28, %ecx          /* not so often that it fills the host's disk */
1:      decl    %ecx
        jnz     1b
        jmp     bad

        /* Carry set: the page at %rdi is to be zero. %ecx becomes the words in a page. */
page:
        movb    shift, %cl
        movl    %edi, %eax
        shrl    %cl, %eax
        xorl    %ebx, %eax
        imull   %r9d, %eax
        shrl    $24, %eax
        movl    $512, %ecx
        cmpb    share, %al
        ret

put_hex:
        movl    $8, %ecx
1:      roll    $4, %eax
        pushq   %rax
        andb    $15, %al
        cmpb    $10, %al
        jb      2f
        addb    $'a' - '0' - 10, %al
2:      addb    $'0', %al
        outb    %al, $console
        popq    %rax
        decl    %ecx
        jnz     1b
        ret

put_decimal:
        xorl    %edx, %edx
        movl    $10, %ecx
        divl    %ecx
        pushq   %rdx
        testl   %eax, %eax
        jz      1f
        call    put_decimal
1:      popq    %rax
        addb    $'0', %al
        outb    %al, $console
        ret

newline:
        movb    $'\n', %al
        outb    %al, $console
        ret

puts:
        lodsb
        testb   %al, %al
        jz      1f
        outb    %al, $console
        jmp     puts
1:      ret

boot_text:
        .asciz  "boot "
pass_text:
        .asciz  "pass "
ok_text:
        .asciz  " ok "
bad_text:
        .asciz  "BAD "

        .balign 4
counter:
        .long   0
        .org    1024
