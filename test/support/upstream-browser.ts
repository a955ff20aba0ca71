/** What our browser tells the test provider about the person who sits in front of it. */
export const PERSON = 'x-test-account';
export const DENIAL = 'x-test-deny';

/** Follows redirects with the cookies that it is given, until it is sent away from the provider. */
export async function browse(
  issuer: string,
  start: string,
  { accountId = 'alice', deny }: { accountId?: string; deny?: string },
): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = new URL(start);
  for (let step = 0; step < 20; step++) {
    const answer = await fetch(url, {
      redirect: 'manual',
      headers: {
        cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        [PERSON]: accountId,
        ...(deny === undefined ? {} : { [DENIAL]: deny }),
      },
    });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') cookies.delete(name);
      else cookies.set(name, value);
    }
    const location = answer.headers.get('location');
    if (location === null) throw new Error(`the provider answered ${answer.status}: ${await answer.text()}`);
    url = new URL(location, url);
    if (url.origin !== issuer) return url;
  }
  throw new Error('the provider redirects without end');
}
