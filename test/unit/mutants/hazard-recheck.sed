# test/unit/stage.c: a scan does not look again after a vacuum
/^do_scan/,/^}/s/if (euno_load64_full(&shared.vacuum_epoch) != epoch &&/if (epoch > 99 \&\&/
