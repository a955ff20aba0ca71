import { bad, denied, describe, type Family, held, open } from '../core/case.ts';
import { newKey } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { Issuer } from '../targets/issuer.ts';
import { issueByCode } from './common.ts';

const redeem = (change: Record<string, string | undefined>) => async (issuer: Issuer) => {
  const { code } = await issuer.code();
  return issuer.tokenRequest(issuer.codeRedemption(code, change));
};

export const authorizationCode: Family<Issuer> = {
  id: 'authorization-code',
  title: 'Authorization codes and PKCE at the token endpoint',
  control: issueByCode,
  cases: [
    ...table<Issuer>(
      {
        section: 'RFC 7636 section 4.6',
        why: 'a code is worth nothing without what only the wallet knows',
        safe: bad('invalid_grant', 'invalid_request'),
      },
      {
        'a wrong code_verifier': redeem({ code_verifier: 'x'.repeat(43) }),
        'no code_verifier': redeem({ code_verifier: undefined }),
        'an empty code_verifier': redeem({ code_verifier: '' }),
        'the challenge as the verifier': async (issuer) => {
          const { code, fields } = await issuer.code();
          return issuer.tokenRequest(issuer.codeRedemption(code, { code_verifier: fields['code_challenge'] }));
        },
        'a verifier that is too long': redeem({ code_verifier: 'x'.repeat(129) }),
      },
    ),
    ...table<Issuer>(
      {
        section: 'RFC 6749 section 4.1.3',
        why: 'a code belongs to one request of one client',
        safe: denied('invalid_grant', 'invalid_client', 'invalid_request'),
      },
      {
        'another redirect_uri': redeem({ redirect_uri: 'https://wallet.example/other' }),
        'no redirect_uri': redeem({ redirect_uri: undefined }),
        'the redirect_uri with a slash more': async (issuer) => redeem({ redirect_uri: `${issuer.options['redirect-uri']}/` })(issuer),
        'another client': redeem({ client_id: 'https://other.example' }),
        'no client': redeem({ client_id: undefined }),
        'a code that was guessed': (issuer) => issuer.tokenRequest(issuer.codeRedemption('guessed')),
        'a code that was used': async (issuer) => {
          const { code } = await issuer.code();
          const key = newKey();
          await issuer.tokenRequest(issuer.codeRedemption(code), { key });
          return issuer.tokenRequest(issuer.codeRedemption(code), { key });
        },
        'a code as a pre-authorized code': async (issuer) => {
          const { code } = await issuer.code();
          return issuer.tokenRequest({ grant_type: 'urn:ietf:params:oauth:grant-type:pre-authorized_code', 'pre-authorized_code': code });
        },
        'a code by another key than it was asked with': async (issuer) => {
          if (!issuer.boundTokens) throw new Skip('the server knows no DPoP');
          const fields = await issuer.authorization();
          const pushed = await issuer.push(fields, { key: newKey() });
          const query = new URLSearchParams({ client_id: String(fields['client_id']), request_uri: String(pushed.json.request_uri) });
          const sent = new URL(await issuer.browser.approve(`${issuer.endpoint('authorization_endpoint')}?${query}`));
          return issuer.tokenRequest(issuer.codeRedemption(sent.searchParams.get('code') ?? ''), { key: newKey() });
        },
      },
    ),
    {
      name: 'the token of a code that came twice',
      section: 'RFC 6749 section 4.1.2',
      why: 'whoever was first may have been the thief',
      safe: { status: [401], error: ['invalid_token'] },
      async run(issuer) {
        const { code, offer } = await issuer.code();
        const key = newKey();
        const grant = issuer.grant(await issuer.tokenRequest(issuer.codeRedemption(code), { key }), key, offer);
        await issuer.tokenRequest(issuer.codeRedemption(code), { key });
        return issuer.credential(grant, await issuer.goodBody(grant));
      },
    },
    {
      name: 'a wrong verifier, and then the right one',
      section: 'RFC 9700 section 4.5',
      why: 'a code that somebody tried is over, or still of its client alone; it gives one token at most',
      safe: bad('invalid_grant'),
      async run(issuer) {
        const { code } = await issuer.code();
        await issuer.tokenRequest(issuer.codeRedemption(code, { code_verifier: 'x'.repeat(43) }));
        const firstResponse = await issuer.tokenRequest(issuer.codeRedemption(code));
        const second = await issuer.tokenRequest(issuer.codeRedemption(code));
        return second.status < 300 ? open('two tokens') : held(`${firstResponse.status}, then ${describe(second)}`);
      },
    },
  ],
};

const refresh =
  (change: Record<string, string | undefined>, isOtherKey = false) =>
  async (issuer: Issuer) => {
    const { refreshToken, key } = await issuer.token();
    const fields = { grant_type: 'refresh_token', refresh_token: refreshToken, ...issuer.clientFields(), ...change };
    return issuer.tokenRequest(fields, { key: isOtherKey ? newKey() : key });
  };

export const refreshTokens: Family<Issuer> = {
  id: 'refresh',
  title: 'Refresh tokens',
  async control(issuer) {
    const grant = await issuer.token();
    if (grant.refreshToken === undefined) throw new Skip('the server gives no refresh tokens');
    const { refreshToken, key, offer } = grant;
    const answer = await issuer.tokenRequest(
      { grant_type: 'refresh_token', refresh_token: refreshToken, ...issuer.clientFields() },
      { key },
    );
    await issuer.issue(issuer.grant(answer, key, offer));
  },
  cases: [
    ...table<Issuer>(
      {
        section: 'RFC 9449 section 5',
        why: 'a refresh token of a public client is bound to its key',
        safe: denied('invalid_grant', 'invalid_dpop_proof'),
      },
      {
        'a refresh token with another key': refresh({}, true),
        'a refresh token without a proof': async (issuer) => {
          const { refreshToken } = await issuer.token();
          return issuer.tokenRequest(
            { grant_type: 'refresh_token', refresh_token: refreshToken, ...issuer.clientFields() },
            { dpop: false },
          );
        },
      },
    ),
    ...table<Issuer>(
      {
        section: 'RFC 6749 section 6',
        why: 'only what was granted, to whom it was granted',
        safe: denied('invalid_grant', 'invalid_scope', 'invalid_request', 'invalid_client'),
      },
      {
        'a refresh token that was guessed': refresh({ refresh_token: 'guessed' }),
        'no refresh token': refresh({ refresh_token: undefined }),
        'a wider scope': refresh({ scope: 'everything' }),
        'an access token as a refresh token': async (issuer) => {
          const { accessToken, key } = await issuer.token();
          return issuer.tokenRequest({ grant_type: 'refresh_token', refresh_token: accessToken }, { key });
        },
      },
    ),
  ],
};
