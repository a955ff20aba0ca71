import { type CaseResult, describe, type Family, held, open } from '../core/case.ts';
import type { Answer } from '../core/http.ts';
import { keyProof, newKey } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { Issuer } from '../targets/issuer.ts';
import { CONCURRENT_CALLERS, evaluateSingleUse, issueCredential, runConcurrently } from './common.ts';

const POSTED = [
  'token_endpoint',
  'credential_endpoint',
  'nonce_endpoint',
  'notification_endpoint',
  'deferred_credential_endpoint',
  'pushed_authorization_request_endpoint',
];
const METHODS = ['GET', 'PUT', 'DELETE', 'PATCH'];

/** Data that other origins could read: credentials must never be allowed by CORS. */
const forPages = (answer: Answer): CaseResult => {
  const { 'access-control-allow-origin': origin, 'access-control-allow-credentials': cookies } = answer.headers;
  return cookies === 'true' && (origin === '*' || origin === 'https://attacker.example')
    ? open(`${origin} with cookies`)
    : held(`${origin ?? 'no origin'}, no cookies`);
};
const hasStack = (answer: Answer): CaseResult =>
  /\bat .+:\d+:\d+|Traceback|node_modules|SQLITE|syntax error at/i.test(answer.text) ? open('the inside is shown') : held(describe(answer));

export const issuerHttp: Family<Issuer> = {
  id: 'issuer-http',
  title: 'Methods, headers and what errors tell',
  control: issueCredential,
  cases: [
    ...table<Issuer>(
      { section: 'RFC 9110 section 15.5.6', why: 'endpoints have one method', safe: { status: [400, 401, 404, 405, 501] } },
      Object.fromEntries(
        POSTED.flatMap((name) =>
          METHODS.map((method) => [`${method} to the ${name}`, (issuer: Issuer) => issuer.http.call(issuer.endpoint(name), { method })]),
        ),
      ),
    ),
    ...table<Issuer>(
      {
        section: 'Fetch standard section 3.3',
        why: 'a page of others must not read with the cookies of the user',
        safe: { status: [200] },
      },
      {
        'a page that asks for the metadata with cookies': async (issuer) => {
          const { origin, pathname } = new URL(issuer.id);
          const url = `${origin}/.well-known/openid-credential-issuer${pathname === '/' ? '' : pathname}`;
          return forPages(await issuer.http.call(url, { headers: { Origin: 'https://attacker.example' } }));
        },
        'a page that asks for a token with cookies': async (issuer) =>
          forPages(await issuer.http.form(issuer.endpoint('token_endpoint'), { grant_type: 'x' }, { Origin: 'https://attacker.example' })),
      },
    ),
    ...table<Issuer>(
      { section: 'OpenID4VCI 1.0 section 13', why: 'errors tell strangers nothing about the inside', safe: { status: [400] } },
      {
        'a token request that is nonsense': async (issuer) =>
          hasStack(await issuer.http.form(issuer.endpoint('token_endpoint'), { grant_type: '\u0000\uffff' })),
        'a credential request that is nonsense': async (issuer) =>
          hasStack(await issuer.resource(issuer.endpoint('credential_endpoint'), await issuer.token(), '{"a":')),
      },
    ),
    {
      name: 'metadata by the name of another host',
      section: 'RFC 9110 section 7.2',
      why: 'whoever sends a Host must not say who the issuer is',
      safe: { status: [200, 400, 404, 421] },
      async run(issuer) {
        const { origin, pathname } = new URL(issuer.id);
        const url = `${origin}/.well-known/openid-credential-issuer${pathname === '/' ? '' : pathname}`;
        const headers = { Host: 'attacker.example', 'X-Forwarded-Host': 'attacker.example', Forwarded: 'host=attacker.example' };
        const answer = await issuer.http.call(url, { headers });
        return answer.text.includes('attacker.example') ? open('the name stands in the metadata') : held(describe(answer));
      },
    },
    {
      name: 'a token answer that caches may keep',
      section: 'RFC 6749 section 5.1',
      why: 'a token in a cache is a token for others',
      safe: { status: [200] },
      async run(issuer) {
        const offer = await issuer.source('pre').next();
        const { headers } = await issuer.tokenRequest(issuer.redemption(offer), { key: newKey() });
        const said = headers['cache-control'] ?? 'no Cache-Control';
        return /no-store/.test(said) ? held(said) : open(said);
      },
    },
  ],
};

/** @throws Skip unless the target is this machine: remote hosts are never put under load. */
function mayRace({ http, id }: Issuer): void {
  if (!http.mayRace(id)) throw new Skip('only targets on this machine are raced');
}

export const issuerRaces: Family<Issuer> = {
  id: 'issuer-races',
  title: 'Many callers at once with one thing that is used once',
  async control(issuer) {
    mayRace(issuer);
    await issueCredential(issuer);
  },
  cases: table<Issuer>(
    {
      section: 'OpenID4VCI 1.0 section 13',
      why: `what is used once is used once, even by ${CONCURRENT_CALLERS} at once`,
      safe: { status: [400] },
    },
    {
      'one pre-authorized code': async (issuer) => {
        const offer = await issuer.source('pre').next();
        return evaluateSingleUse(
          await runConcurrently(CONCURRENT_CALLERS, () => issuer.tokenRequest(issuer.redemption(offer), { key: newKey() })),
        );
      },
      'one transaction code, tried': async (issuer) => {
        const source = issuer.source('tx');
        const offer = await source.next();
        return evaluateSingleUse(
          await runConcurrently(CONCURRENT_CALLERS, () => issuer.tokenRequest(issuer.redemption(offer, source.txCode), { key: newKey() })),
        );
      },
      'one authorization code': async (issuer) => {
        const { code } = await issuer.code();
        return evaluateSingleUse(
          await runConcurrently(CONCURRENT_CALLERS, () => issuer.tokenRequest(issuer.codeRedemption(code), { key: newKey() })),
        );
      },
      'one nonce, with tokens of their own': async (issuer) => {
        issuer.endpoint('nonce_endpoint');
        const grants = await runConcurrently(CONCURRENT_CALLERS, () => issuer.token());
        const nonce = await issuer.nonce();
        return evaluateSingleUse(
          await Promise.all(
            grants.map((grant) =>
              issuer.credential(grant, { ...issuer.subject(grant), proofs: { jwt: [keyProof(newKey(), issuer.id, nonce)] } }),
            ),
          ),
        );
      },
      'one DPoP proof': async (issuer) => {
        if (!issuer.boundTokens) throw new Skip('tokens are not bound');
        const grant = await issuer.token();
        const bodies = await runConcurrently(CONCURRENT_CALLERS, () => issuer.goodBody(grant));
        let firstProof: string | undefined;
        // All send the proof of the first call, with its nonce.
        const proof = (good: string) => {
          firstProof ??= good;
          return firstProof;
        };
        return evaluateSingleUse(await Promise.all(bodies.map((body) => issuer.credential(grant, body, { proof }))));
      },
      'one refresh token, with one proof each': async (issuer) => {
        const { refreshToken } = await issuer.token();
        if (refreshToken === undefined) throw new Skip('the server gives no refresh tokens');
        const answers = await runConcurrently(CONCURRENT_CALLERS, () =>
          issuer.tokenRequest({ grant_type: 'refresh_token', refresh_token: refreshToken, ...issuer.clientFields() }, { key: newKey() }),
        );
        const acceptedCount = answers.filter(({ status }) => status < 300 && status > 0).length;
        const broken = answers.some(({ status }) => status >= 500 || status === -1);
        return acceptedCount > 0 || broken ? open(`${acceptedCount} taken by strangers`) : held('none taken by keys of strangers');
      },
    },
  ),
};
