/** An address without its query, which may contain a secret of the operator. */
export function withoutQuery(uri: string): string {
  if (!URL.canParse(uri)) return 'something that is no address';
  const { origin, pathname } = new URL(uri);
  return origin + pathname;
}
