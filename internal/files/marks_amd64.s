#include "textflag.h"

// func markWords(to *uint64, p *byte, words int, c byte)
TEXT ·markWords(SB), NOSPLIT, $0-25
	MOVQ to+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ words+16(FP), CX
	VPBROADCASTB c+24(FP), Y0

next:
	VPCMPEQB (SI), Y0, Y1
	VPCMPEQB 32(SI), Y0, Y2
	VPMOVMSKB Y1, AX
	VPMOVMSKB Y2, BX
	SHLQ $32, BX
	ORQ BX, AX
	MOVQ AX, (DI)
	ADDQ $64, SI
	ADDQ $8, DI
	DECQ CX
	JNZ next

	VZEROUPPER
	RET
