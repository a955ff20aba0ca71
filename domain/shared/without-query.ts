/** An address as people may see it who did not write it: a query may carry a secret of the operator's. */
export function withoutQuery(uri: string): string {
  if (!URL.canParse(uri)) return 'something that is no address';
  const { origin, pathname } = new URL(uri);
  return origin + pathname;
}
