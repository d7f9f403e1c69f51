# src/core/bptree/bpt_directory.c: a separator is posted where it belonged once
/^euno_bpt_post/,/^}/s/else if (euno_bpt_path_current(.*))/else if (true)/
