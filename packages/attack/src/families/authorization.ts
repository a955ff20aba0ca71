import { anyRefusal, type CaseResult, describe, type Family, held, open } from '../core/case.ts';
import type { Answer } from '../core/http.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { Issuer } from '../targets/issuer.ts';
import { issueByCode } from './common.ts';

const visit = (issuer: Issuer, fields: Record<string, string | undefined>) => {
  const pairs = Object.entries(fields).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return issuer.http.call(`${issuer.endpoint('authorization_endpoint')}?${new URLSearchParams(pairs)}`);
};
/** Held unless the browser is redirected to this address. */
const refusedRedirectTo = (place: string, answer: Answer): CaseResult => {
  if (answer.status >= 500) return open(`breaks: ${answer.status}`);
  const { location = '' } = answer.headers;
  return location.startsWith(place) ? open('redirects there') : held(`${answer.status}, no redirect there`);
};

export const authorization: Family<Issuer> = {
  id: 'authorization',
  title: 'The authorization endpoint, redirects and mix-up',
  control: issueByCode,
  cases: [
    ...table<Issuer>(
      { section: 'RFC 9700 section 4.1', why: 'a browser is never sent to whom no client vouched for', safe: anyRefusal },
      {
        'a request without PAR to a strange place': async (issuer) =>
          refusedRedirectTo(
            'https://attacker.example',
            await visit(issuer, { ...(await issuer.authorization()), redirect_uri: 'https://attacker.example/cb' }),
          ),
        'another redirect_uri beside a pushed request': async (issuer) => {
          const url = new URL(await issuer.authorizationUrl(await issuer.authorization()));
          url.searchParams.set('redirect_uri', 'https://attacker.example/cb');
          return refusedRedirectTo('https://attacker.example', await issuer.http.call(url.href));
        },
        'an unknown request and a redirect_uri': async (issuer) =>
          refusedRedirectTo(
            'https://attacker.example',
            await visit(issuer, { client_id: 'x', request_uri: 'urn:x', redirect_uri: 'https://attacker.example/cb' }),
          ),
      },
    ),
    ...table<Issuer>(
      { section: 'RFC 6749 sections 10.13 and 10.14', why: 'a page that others frame is clicked for others', safe: { status: [200] } },
      {
        'a page that others may frame': async (issuer) => {
          const { headers, status } = await issuer.http.call(await issuer.authorizationUrl(await issuer.authorization()));
          if (status !== 200) throw new Skip('the endpoint shows no page of its own');
          const safe = /frame-ancestors/.test(headers['content-security-policy'] ?? '') || headers['x-frame-options'] !== undefined;
          return safe ? held('not framed') : open('no frame-ancestors, no X-Frame-Options');
        },
        'a client that is named by markup': async (issuer) => {
          const fields = await issuer.authorization({ client_id: '<script>alert(1)</script>' });
          const pushed = issuer.server.pushed_authorization_request_endpoint === undefined ? undefined : await issuer.push(fields);
          if (pushed !== undefined && pushed.status >= 400) return held(describe(pushed));
          const page =
            pushed === undefined
              ? await visit(issuer, fields)
              : await visit(issuer, { client_id: fields['client_id'], request_uri: pushed.json.request_uri });
          return page.text.includes('<script>alert(1)') ? open('the markup stands in the page') : held(`${page.status}, escaped`);
        },
      },
    ),
    {
      name: 'an answer that does not say who gave it',
      section: 'RFC 9207 section 2',
      why: 'without iss a wallet takes the code of one server to another',
      safe: { status: [302, 303] },
      async run(issuer) {
        const { sent } = await issuer.code();
        const iss = sent.searchParams.get('iss');
        return iss === issuer.server.issuer ? held('iss is there') : open(`iss is ${iss}`);
      },
    },
    {
      name: 'an answer without the state of the wallet',
      section: 'RFC 6749 section 4.1.2',
      why: 'the wallet knows its own request by it',
      safe: { status: [302, 303] },
      async run(issuer) {
        const { sent, fields } = await issuer.code();
        return sent.searchParams.get('state') === fields['state'] ? held('state is there') : open('another state');
      },
    },
    {
      name: 'an approval that is pressed without the page',
      section: 'RFC 9700 section 4.7',
      why: 'a page of others must not approve for the user',
      safe: anyRefusal,
      async run(issuer) {
        const url = new URL(await issuer.authorizationUrl(await issuer.authorization()));
        const fields = { ...Object.fromEntries(url.searchParams), decision: 'approve', action: 'approve' };
        const answer = await issuer.http.form(issuer.endpoint('authorization_endpoint'), fields, { Origin: 'https://attacker.example' });
        return /[?&]code=/.test(answer.headers['location'] ?? '') ? open('a code was given') : held(describe(answer));
      },
    },
    ...table<Issuer>(
      { section: 'RFC 6749 section 3.1', why: 'what is unknown is refused on a page', safe: anyRefusal },
      {
        'no parameters at all': (issuer) => visit(issuer, {}),
        'a request by value that nobody signed': (issuer) => visit(issuer, { client_id: 'x', request: 'eyJhbGciOiJub25lIn0.e30.' }),
        'a client_id with a NUL': (issuer) => visit(issuer, { client_id: 'a\0b', request_uri: 'urn:x' }),
      },
    ),
  ],
};
