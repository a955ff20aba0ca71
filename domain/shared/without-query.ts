/** An address without its query, which may contain a secret of the operator. */
export function withoutQuery(uri: string): string {
  if (!URL.canParse(uri)) return 'an invalid address';
  const { origin, pathname } = new URL(uri);
  return origin + pathname;
}
