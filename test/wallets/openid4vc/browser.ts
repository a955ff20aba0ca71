/** A user who opens the page of an authorization endpoint, reads it and approves. @returns where the browser is sent. */
export async function approve(authorizationUrl: string): Promise<string> {
  const page = await fetch(authorizationUrl, { redirect: 'manual' });
  const html = await page.text();
  if (page.status !== 200) throw new Error(`the page answered ${page.status}: ${html}`);
  const fields = [...html.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)];
  const form = new URLSearchParams(fields.map(([, name = '', value = '']): [string, string] => [name, decodeHtml(value)]));
  form.set('decision', 'approve');
  const [, action = ''] = /<form [^>]*action="([^"]+)"/.exec(html) ?? [];
  const answer = await fetch(decodeHtml(action), { method: 'POST', body: form, redirect: 'manual' });
  const location = answer.headers.get('location');
  if (answer.status !== 303 || location === null) throw new Error(`the form answered ${answer.status}`);
  return location;
}

function decodeHtml(html: string): string {
  return html.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
}
