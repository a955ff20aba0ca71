/**
 * Writes a wish over stored settings (RFC 7396): absent leaves a field, null brings the global default back.
 * @returns null when nothing but defaults remains.
 */
export function mergeSettings<T extends object>(stored: T | null, wish: T | null | undefined): T | null {
  if (wish === undefined) return stored;
  if (wish === null) return null;
  const fields = Object.entries({ ...stored, ...wish }).filter(
    ([, value]) => value !== null && value !== undefined,
  );
  return fields.length === 0 ? null : (Object.fromEntries(fields) as T);
}
