# src/core/bptree/bpt_merge.c: directories are not locked for a merge
/^directories_lock/,/^}/s/euno_mutex_lock/(void)/;/^directories_unlock/,/^}/s/euno_mutex_unlock/(void)/
