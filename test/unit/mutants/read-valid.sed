# src/core/bptree/bpt_read.c: a batch is believed unseen
/^forward_leaf/,/^}/s/status = euno_bpt_valid(&rd->place);/status = EUNO_OK;/
