type MapLike<Key, Value> = { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown };

export function getOrCreate<Key, Value>(cache: MapLike<Key, NoInfer<Value>>, key: Key, create: () => Value): Value {
  const cached = cache.get(key);
  if (cached !== undefined) return cached;
  const created = create();
  cache.set(key, created);
  return created;
}
