local Queue = {}

-- function commented() end
function Queue.new()
  return setmetatable({}, Queue)
end

function Queue:push(item)
  self[#self + 1] = item
end

local function helper(n)
  return n * 2
end

function free() return helper(1) end
