type Keeper<Key, Value> = { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown };

/** What is kept under this key; made when it is asked for first. */
export function madeOnce<Key, Value>(kept: Keeper<Key, NoInfer<Value>>, key: Key, make: () => Value): Value {
  const known = kept.get(key);
  if (known !== undefined) return known;
  const made = make();
  kept.set(key, made);
  return made;
}
