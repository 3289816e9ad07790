/**
 * Takes a batch in one step, and gives 1, or 0 when it was taken before.
 * KEYS: what was last taken from the writer, lines, retention, ids of sums, expiry of sums, then each sum.
 * ARGV: number of the batch, how long the writer is remembered, how long lines are kept, how many lines and how many
 * sums there are; for each line its time and itself; for each sum its id, its time to live, the time of its expiry,
 * how many numbers it has, and these by name. Times to live are in milliseconds.
 *
 * A number that passes 64 bits stays as it is: an error halfway would leave half of a batch.
 */
export const appendScript = `
if tonumber(redis.call('GET', KEYS[1]) or '0') >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
local at = 6
local behind = at + 2 * tonumber(ARGV[4])
while at < behind do
  local stop = math.min(at + 1000, behind)
  redis.call('ZADD', KEYS[2], unpack(ARGV, at, stop - 1))
  at = stop
end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[3])
for sum = 1, tonumber(ARGV[5]) do
  local key, id, ttl, count = KEYS[5 + sum], ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 3])
  for field = at + 4, at + 2 + 2 * count, 2 do
    redis.pcall('HINCRBY', key, ARGV[field], ARGV[field + 1])
  end
  if tonumber(ttl) > redis.call('PTTL', key) then redis.call('PEXPIRE', key, ttl) end
  redis.call('ZADD', KEYS[4], '0', id)
  redis.call('ZADD', KEYS[5], 'GT', ARGV[at + 2], id)
  at = at + 4 + 2 * count
end
return 1`;

/**
 * Removes lines and sums that have expired, and gives how many there were of that kind of which there were more.
 * KEYS: lines, ids of sums, expiry of sums. ARGV: bounds of their times, and how many of each are removed at most.
 */
export const sweepScript = `
local most = tonumber(ARGV[3])
local lines = math.min(redis.call('ZCOUNT', KEYS[1], '-inf', ARGV[1]), most)
if lines > 0 then redis.call('ZREMRANGEBYRANK', KEYS[1], '0', lines - 1) end
local ids = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', ARGV[2], 'LIMIT', '0', ARGV[3])
if #ids > 0 then
  redis.call('ZREM', KEYS[2], unpack(ids))
  redis.call('ZREM', KEYS[3], unpack(ids))
end
return math.max(lines, #ids)`;
