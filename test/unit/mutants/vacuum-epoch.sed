# test/unit/stage.c: the vacuum epoch advances before the removal
/^do_bulk_delete/,/^}/{s/^\tdo_walk(player, a, b);/\t(void) euno_add64_full(\&shared.vacuum_epoch, 1);\n&/;/^\t(void) euno_add64_full(&shared.vacuum_epoch, 1);$/d}
