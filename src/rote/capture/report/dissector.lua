-- Teaching frames, A1 frames and the data channel of Unitree robots, for Wireshark.
-- Written by: rote capture dissector. Use: wireshark -X lua_script:rote.lua
-- For the data channel add a key log: Preferences, Protocols, TLS, (Pre)-Master-Secret log file.

local bit = bit or require("bit")
local band, bxor, rshift, lshift, bnot = bit.band, bit.bxor, bit.rshift, bit.lshift, bit.bnot

local function unsigned(value)
  if value < 0 then return value + 4294967296 end
  return value
end

local FIELDS = {
  uint8 = ProtoField.uint8, int8 = ProtoField.int8, uint16 = ProtoField.uint16,
  int16 = ProtoField.int16, uint32 = ProtoField.uint32, int32 = ProtoField.int32,
  uint64 = ProtoField.uint64, float = ProtoField.float, bytes = ProtoField.bytes,
  string = ProtoField.string,
}

-- A table of fields, made when first asked for by name; Wireshark wants to know all at the start.
local function declare(proto, prefix, rows, known)
  for _, row in ipairs(rows) do
    local name = row[1]:gsub("[^%w_.]", "_"):gsub("_+$", "")
    local key = prefix .. "." .. name .. "." .. row[4]
    if not known[key] then
      known[key] = row[5] and FIELDS[row[4]](prefix .. "." .. name, row[1], base.DEC, row[5])
        or FIELDS[row[4]](prefix .. "." .. name, row[1])
      table.insert(known.all, known[key])
    end
    row.field = known[key]
  end
end

local function show(tree, range, rows, start, add)
  for _, row in ipairs(rows) do
    local size = row[3]
    if size < 0 then size = range:len() - 4 - start - row[2] end -- up to the checksum
    if size > 0 and start + row[2] + size <= range:len() then
      local part = range(start + row[2], size)
      if row[4] == "string" then tree:add_packet_field(row.field, part, ENC_UTF_8)
      else tree[add](tree, row.field, part) end
    end
  end
end

-- ---- documented teaching frames ------------------------------------------------------------------

local TYPES = @TEACHING_TYPES@
local COMMANDS = @TEACHING_COMMANDS@
local CODES = @TEACHING_CODES@
local PAYLOADS = @TEACHING_PAYLOADS@
local ENTRY = @TEACHING_ENTRY@
local KEYFRAME = @TEACHING_KEYFRAME@
local HEADER, SHORT, LIST, ENTRY_SIZE, KEYFRAMES, KEYFRAME_SIZE = 15, 44, 220, 36, 20, 8
local PORT = 49504

local teaching = Proto("rote_teaching", "Documented teaching frame")
local teaching_type = ProtoField.uint8("rote_teaching.type", "type", base.HEX, TYPES)
local teaching_sequence = ProtoField.uint16("rote_teaching.sequence", "sequence")
local teaching_command = ProtoField.uint8("rote_teaching.command", "command", base.HEX, COMMANDS)
local teaching_length = ProtoField.uint16("rote_teaching.length", "payload length")
local teaching_payload = ProtoField.bytes("rote_teaching.payload", "payload")
local teaching_crc = ProtoField.uint32("rote_teaching.crc", "CRC-32", base.HEX)
local teaching_direction = ProtoField.string("rote_teaching.direction", "direction")
local teaching_kind = ProtoField.string("rote_teaching.kind", "kind")
local teaching_count = ProtoField.uint16("rote_teaching.list.count", "actions")
local teaching_joints = ProtoField.uint16("rote_teaching.state.joints", "joints")
local teaching_position = ProtoField.float("rote_teaching.state.position", "position")
local teaching_velocity = ProtoField.float("rote_teaching.state.velocity", "velocity")
local known = {all = {teaching_type, teaching_sequence, teaching_command, teaching_length,
  teaching_payload, teaching_crc, teaching_direction, teaching_kind, teaching_count,
  teaching_joints, teaching_position, teaching_velocity}}
for _, payload in ipairs(PAYLOADS) do declare(teaching, payload.prefix, payload.fields, known) end
declare(teaching, "rote_teaching", ENTRY, known)
declare(teaching, "rote_teaching", KEYFRAME, known)
local teaching_flags = known["rote_teaching.state.flags.uint32"]
teaching.fields = known.all

-- Who sent a frame: what the frame tells alone, else what the frames before it told.
local robots, clients, asked, decided = {}, {}, {}, {}
function teaching.init()
  robots, clients, asked, decided = {}, {}, {}, {}
end

local function all_zero(buffer, from, count)
  for at = from, from + count - 1 do
    if buffer(at, 1):uint() ~= 0 then return false end
  end
  return true
end

local function told_alone(buffer, kind, command, length)
  if kind == 0x81 then return "report" end
  if kind ~= 0x17 then return "either" end
  if length ~= SHORT then
    return (command == 0x1A and length >= LIST) and "reply" or "request"
  end
  if command == 0x2B or command == 0x41 then return "reply" end
  local word = buffer(HEADER, 4):uint()
  local code = @MIN_CODE@ <= word and word <= @MAX_CODE@
  local opaque = command == 0x0A or command == 0x0B
  if code and not (opaque and not all_zero(buffer, HEADER + 4, SHORT - 4)) then return "reply" end
  if not all_zero(buffer, HEADER, SHORT) then return "request" end
  return nil
end

local function direction_of(buffer, packet, kind, command, length)
  if decided[packet.number] then return decided[packet.number] end
  local from = tostring(packet.src) .. " " .. packet.src_port
  local to = tostring(packet.dst) .. " " .. packet.dst_port
  local way, back = from .. " " .. to, to .. " " .. from
  local told = told_alone(buffer, kind, command, length)
  if kind == 0x17 then
    if robots[way] or clients[back] then told = "reply"
    elseif clients[way] or robots[back] then told = "request" end
  end
  local sequence = buffer(6, 2):uint()
  if told == nil then
    local before = asked[back .. " " .. command]
    local answers = before ~= nil and (sequence - before) % 65536 <= 1
    told = (answers or packet.src_port == PORT) and "reply" or "request"
    if answers then robots[way] = true end
  elseif told == "request" then clients[way] = true
  elseif told ~= "either" then robots[way] = true end
  if told == "request" then asked[way .. " " .. command] = sequence end
  decided[packet.number] = told
  return told
end

local function payload_of(buffer, kind, command, length, direction)
  local best
  for _, each in ipairs(PAYLOADS) do
    local its = each.type == kind and each.least <= length and length <= each.most
    if kind == 0x17 then
      its = its and each.reply == (direction == "reply")
      its = its and (each.reply or each.command == command)
      its = its and (each.tag == "" or buffer(HEADER, #each.tag):string() == each.tag)
    end
    if its and (best == nil or #each.tag > #best.tag) then best = each end
  end
  return best
end

local IEEE = {}
for start = 0, 255 do
  local value = start
  for _ = 1, 8 do
    local low = band(value, 1)
    value = rshift(value, 1)
    if low == 1 then value = bxor(value, 0xEDB88320) end
  end
  IEEE[start] = value
end

local function crc32(range, size)
  local bytes = range:bytes()
  local value = bnot(0)
  for at = 0, size - 1 do
    value = bxor(rshift(value, 8), IEEE[band(bxor(value, bytes:get_index(at)), 0xFF)])
  end
  return unsigned(bnot(value))
end

local function is_teaching(buffer)
  local size = buffer:len()
  if size < HEADER + 4 or buffer:reported_len() ~= size then return false end
  if TYPES[buffer(0, 1):uint()] == nil or buffer(1, 3):uint() ~= 0xFEFD00 then return false end
  if buffer(4, 2):uint() ~= 0x0100 or buffer(8, 4):uint() ~= 1 then return false end
  if buffer(13, 2):uint() ~= size - HEADER - 4 then return false end
  return crc32(buffer(), size - 4) == buffer(size - 4, 4):uint()
end

local function show_list(tree, buffer, length)
  local count = buffer(HEADER, 2):uint()
  tree:add(teaching_count, buffer(HEADER, 2))
  for at = 0, count - 1 do
    local start = HEADER + 2 + at * ENTRY_SIZE
    if start + ENTRY_SIZE <= HEADER + length then show(tree, buffer, ENTRY, start, "add") end
  end
end

local function show_keyframes(tree, buffer, start)
  for at = 0, KEYFRAMES - 1 do
    local slot = start + at * KEYFRAME_SIZE
    if not all_zero(buffer, slot, KEYFRAME_SIZE) then show(tree, buffer, KEYFRAME, slot, "add") end
  end
end

local function show_all_joints(tree, buffer, length)
  local count = buffer(HEADER + 4, 2):uint()
  if length ~= 56 + 8 * count then return end
  tree:add(teaching_flags, buffer(HEADER, 4))
  tree:add(teaching_joints, buffer(HEADER + 4, 2))
  for at = 0, count - 1 do
    tree:add(teaching_position, buffer(HEADER + 8 + 4 * at, 4))
    tree:add(teaching_velocity, buffer(HEADER + 8 + 4 * (count + at), 4))
  end
end

function teaching.dissector(buffer, packet, root)
  local size = buffer:len()
  local length, kind, command = size - HEADER - 4, buffer(0, 1):uint(), buffer(12, 1):uint()
  local direction = direction_of(buffer, packet, kind, command, length)
  local layout = payload_of(buffer, kind, command, length, direction)
  packet.cols.protocol = "TEACHING"
  local name = COMMANDS[command] or string.format("command 0x%02x", command)
  if kind ~= 0x17 then name = TYPES[kind] end
  local info = string.format("%s, sequence %d", name, buffer(6, 2):uint())
  local tree = root:add(teaching, buffer())
  tree:add(teaching_direction, buffer(0, 1), direction):set_generated()
  tree:add(teaching_type, buffer(0, 1))
  tree:add(teaching_sequence, buffer(6, 2))
  tree:add(teaching_command, buffer(12, 1))
  tree:add(teaching_length, buffer(13, 2))
  if length > 0 then
    local payload = tree:add(teaching_payload, buffer(HEADER, length))
    if direction == "reply" and command == 0x1A and length >= LIST then
      tree:add(teaching_kind, buffer(12, 1), "list-reply"):set_generated()
      show_list(payload, buffer, length)
    elseif layout then
      tree:add(teaching_kind, buffer(12, 1), layout.key):set_generated()
      show(payload, buffer, layout.fields, HEADER, "add")
      if layout.keyframes then show_keyframes(payload, buffer, HEADER + layout.keyframes) end
    elseif kind == 0x81 and length >= 56 then
      tree:add(teaching_kind, buffer(12, 1), "state-all"):set_generated()
      show_all_joints(payload, buffer, length)
    end
  end
  if direction == "reply" then
    info = info .. ", reply"
    if length == SHORT then
      local code = buffer(HEADER, 4):uint()
      info = info .. string.format(": %d, %s", code, CODES[code] or "not known")
    end
  elseif direction == "request" then info = info .. ", request" end
  packet.cols.info = info
  tree:add(teaching_crc, buffer(size - 4, 4))
  return size
end

teaching:register_heuristic("udp", function(buffer, packet, root)
  if not is_teaching(buffer) then return false end
  teaching.dissector(buffer, packet, root)
  return true
end)

-- ---- frames of the A1 and the Go1 ----------------------------------------------------------------

local A1 = @A1_FRAMES@

local a1 = Proto("rote_a1", "Unitree A1 frame")
local a1_kind = ProtoField.string("rote_a1.kind", "kind")
local a1_dialects = ProtoField.string("rote_a1.dialects", "dialects")
local a1_crc = ProtoField.uint32("rote_a1.crc", "word CRC", base.HEX)
known = {all = {a1_kind, a1_dialects, a1_crc}}
for _, frame in pairs(A1) do declare(a1, "rote_a1", frame.fields, known) end
a1.fields = known.all

local MPEG = {}
for start = 0, 255 do
  local value = lshift(start, 24)
  for _ = 1, 8 do
    local high = band(value, 0x80000000) ~= 0
    value = lshift(value, 1)
    if high then value = bxor(value, 0x04C11DB7) end
  end
  MPEG[start] = value
end

-- Over little-endian words, as many as are full less one.
local function word_crc(range, size)
  local bytes = range:bytes()
  local value = bnot(0)
  for word = 0, math.floor(size / 4) - 2 do
    for at = 3, 0, -1 do
      local byte = bytes:get_index(word * 4 + at)
      value = bxor(lshift(value, 8), MPEG[band(bxor(rshift(value, 24), byte), 0xFF)])
    end
  end
  return unsigned(value)
end

local function go1_crc(plain)
  local masked = unsigned(bxor(plain, 0xEDCAB9DE))
  return unsigned(bxor(rshift(masked, 8), lshift(masked, 24)))
end

local function is_a1(buffer)
  local size = buffer:len()
  local frame = A1[size]
  if frame == nil or buffer:reported_len() ~= size then return nil end
  local plain, stated = word_crc(buffer(), size), buffer(size - 4, 4):le_uint()
  if stated == plain or (frame.go1 and stated == go1_crc(plain)) then return frame end
  return nil
end

function a1.dissector(buffer, packet, root)
  local size = buffer:len()
  local frame = A1[size]
  packet.cols.protocol = "A1"
  packet.cols.info = string.format("%s (%s)", frame.kind, frame.dialects)
  local tree = root:add(a1, buffer())
  tree:add(a1_kind, buffer(), frame.kind):set_generated()
  tree:add(a1_dialects, buffer(), frame.dialects):set_generated()
  show(tree, buffer, frame.fields, 0, "add_le")
  tree:add_le(a1_crc, buffer(size - 4, 4))
  return size
end

a1:register_heuristic("udp", function(buffer, packet, root)
  if is_a1(buffer) == nil then return false end
  a1.dissector(buffer, packet, root)
  return true
end)

-- ---- the data channel ----------------------------------------------------------------------------

local APIS = @APIS@
local TEXT, BINARY = 51, 53

local channel = Proto("rote_channel", "Robot data channel")
local channel_type = ProtoField.string("rote_channel.type", "type")
local channel_topic = ProtoField.string("rote_channel.topic", "topic")
local channel_api = ProtoField.uint32("rote_channel.api_id", "api id")
local channel_name = ProtoField.string("rote_channel.name", "asked")
local channel_id = ProtoField.uint64("rote_channel.id", "id")
local channel_code = ProtoField.int32("rote_channel.code", "code")
local channel_json = ProtoField.string("rote_channel.json", "JSON")
channel.fields = {channel_type, channel_topic, channel_api, channel_name, channel_id, channel_code,
  channel_json}

local json = Dissector.get("json")

local function words(text, tree, range)
  local kind = text:match('"type"%s*:%s*"([^"]*)"') or "?"
  local topic = text:match('"topic"%s*:%s*"([^"]*)"') or ""
  local api = text:match('"api_id"%s*:%s*(%-?%d+)')
  local id = text:match('"identity"%s*:%s*{[^}]*"id"%s*:%s*(%d+)')
  local code = text:match('"code"%s*:%s*(%-?%d+)')
  local info = kind
  tree:add(channel_type, range, kind)
  if topic ~= "" then
    tree:add(channel_topic, range, topic)
    info = info .. " " .. topic
  end
  if api then
    tree:add(channel_api, range, tonumber(api))
    local name = APIS[(topic:match("rt/api/([^/]+)/") or "") .. " " .. api]
    if name then tree:add(channel_name, range, name):set_generated() end
    info = info .. " " .. api .. (name and " " .. name or "")
  end
  if id then tree:add(channel_id, range, UInt64(id)) end
  if kind == "res" and code then
    tree:add(channel_code, range, tonumber(code))
    info = info .. " code " .. code
  end
  return info
end

function channel.dissector(buffer, packet, root)
  if buffer:len() == 0 then return 0 end
  local range = buffer()
  local start = 0
  if buffer(0, 1):uint() ~= 0x7B and buffer:len() > 4 then
    -- A binary frame: its JSON comes first, behind a short head or a wide one.
    local length = buffer(0, 2):le_uint()
    start = 4
    if length == 2 and buffer:len() > 12 then
      length, start = buffer(4, 4):le_uint(), 12
    end
    if start + length > buffer:len() then return 0 end
    range = buffer(start, length)
  end
  local text = range:string()
  if text:sub(1, 1) ~= "{" then return 0 end
  local tree = root:add(channel, buffer())
  local info = words(text, tree, range)
  tree:add(channel_json, range)
  pcall(Dissector.call, json, range:tvb(), packet, tree)
  packet.cols.protocol = "CHANNEL"
  packet.cols.info = info
  return buffer:len()
end

for _, kind in ipairs({TEXT, BINARY}) do
  DissectorTable.get("sctp.ppi"):add(kind, channel)
end

-- Wireshark has no dissector for SCTP in DTLS unless a signalling told it of one.
local inside = Proto("rote_sctp", "SCTP in DTLS")
local sctp = Dissector.get("sctp")

inside:register_heuristic("dtls", function(buffer, packet, root)
  local size = buffer:len()
  if size < 16 or size % 4 ~= 0 or buffer(0, 2):uint() == 0 then return false end
  local kind, length = buffer(12, 1):uint(), buffer(14, 2):uint()
  if length < 4 or 12 + length > size or (kind > 15 and kind < 128) then return false end
  sctp:call(buffer, packet, root)
  return true
end)
