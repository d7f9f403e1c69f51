-- The test oltp_$EUNO_SYSBENCH of sysbench, with rows chosen by Zipf's law with
-- exponent 0.99 (its continuous form); popular rows are anywhere.

require("oltp_" .. os.getenv("EUNO_SYSBENCH"))

sysbench.rand.default = function(low, high)
	local n = high - low + 1
	local u = sysbench.rand.uniform(0, 999999999) / 1e9
	local rank = math.floor((u * (n ^ 0.01 - 1) + 1) ^ 100) - 1

	return low + rank * 7919 % n
end
