-- The health of an object of any of the operator's kinds, for Argo CD.
-- It says the same as kstatus does: see docs/gitops.md.
local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function is_true(name)
  return conditions[name] ~= nil and conditions[name].status == "True"
end

local function health(code, name, otherwise)
  local condition = conditions[name]
  if condition == nil then
    return {status = code, message = otherwise}
  end
  return {status = code, message = condition.reason .. ": " .. condition.message}
end

if obj.metadata.deletionTimestamp ~= nil then
  if is_true("DeletionBlocked") then
    return health("Progressing", "DeletionBlocked", "")
  end
  return health("Progressing", "Ready", "Being deleted")
end
if status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "The operator has not seen the latest change yet"}
end
if is_true("Stalled") then
  return health("Degraded", "Stalled", "")
end
if is_true("Ready") and not is_true("Reconciling") then
  return health("Healthy", "Ready", "")
end
return health("Progressing", "Ready", "The operator is at work")
