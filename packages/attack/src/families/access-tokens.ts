import { denied, type Family } from '../core/case.ts';
import { newKey, now, payloadOf, symmetric, unsigned, withBrokenSignature, withPayload } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { Grant, Issuer } from '../targets/issuer.ts';
import { issueCredential } from './common.ts';

/** A credential request with a token derived from a valid one. */
const withToken = (alteration: (token: string, grant: Grant) => string) => async (issuer: Issuer) => {
  const grant = await issuer.token();
  return issuer.credential({ ...grant, accessToken: alteration(grant.accessToken, grant) }, await issuer.goodBody(grant));
};
const jwt = (alteration: (token: string) => string) =>
  withToken((token) => {
    if (token.split('.').length !== 3) throw new Skip('access tokens are no JWTs');
    return alteration(token);
  });

export const accessTokens: Family<Issuer> = {
  id: 'access-tokens',
  title: 'Access tokens, and where they are worth something',
  control: issueCredential,
  cases: [
    ...table<Issuer>(
      { section: 'RFC 9068 section 4', why: 'a token is what its server signed, letter by letter', safe: denied('invalid_token') },
      {
        'a token that was guessed': withToken(() => 'guessed'),
        'an empty token': withToken(() => ''),
        'a token with a broken signature': jwt(withBrokenSignature),
        'a token without a signature': jwt((token) => token.slice(0, token.lastIndexOf('.') + 1)),
        'a token with alg none': jwt(unsigned),
        'a token by HS256': jwt((token) => symmetric(token, 'secret')),
        'a token that lasts longer': jwt((token) => withPayload(token, { exp: now() + 10_000_000 })),
        'a token of another key': jwt((token) => withPayload(token, { cnf: { jkt: 'x' } })),
        'a token for more': jwt((token) => withPayload(token, { scope: 'everything', authorization_details: [] })),
        'the pre-authorized code as a token': withToken((_, { offer }) => offer.preCode),
        'the refresh token as an access token': withToken((_, { refreshToken }) => {
          if (refreshToken === undefined) throw new Skip('the server gives no refresh tokens');
          return refreshToken;
        }),
      },
    ),
    ...table<Issuer>(
      { section: 'RFC 6750 section 2', why: 'a token comes in one header, and in no address that logs keep', safe: { status: [400, 401] } },
      {
        'no token': async (issuer) => {
          const grant = await issuer.token();
          return issuer.http.json(issuer.endpoint('credential_endpoint'), await issuer.goodBody(grant));
        },
        'the token in the query': async (issuer) => {
          const grant = await issuer.token();
          const url = `${issuer.endpoint('credential_endpoint')}?access_token=${encodeURIComponent(grant.accessToken)}`;
          return issuer.bound(url, async (proof) => issuer.http.json(url, await issuer.goodBody(grant), proof), {
            key: grant.key,
            token: grant.accessToken,
          });
        },
        'the token in the body': async (issuer) => {
          const grant = await issuer.token();
          const url = issuer.endpoint('credential_endpoint');
          return issuer.http.json(url, { ...(await issuer.goodBody(grant)), access_token: grant.accessToken });
        },
        'two Authorization headers': async (issuer) => {
          const grant = await issuer.token();
          const headers = { Authorization: [`DPoP ${grant.accessToken}`, 'Bearer guessed'] };
          return issuer.credential(grant, await issuer.goodBody(grant), { headers });
        },
        'the scheme Basic': async (issuer) => {
          const grant = await issuer.token();
          return issuer.credential(grant, await issuer.goodBody(grant), { scheme: 'Basic' });
        },
      },
    ),
    {
      name: 'the token of this issuer at another',
      section: 'RFC 9068 section 4',
      why: 'a token is for the audience that it names',
      safe: denied('invalid_token', 'invalid_dpop_proof'),
      async run(issuer) {
        const otherIssuer = issuer.options['other-issuer'];
        if (otherIssuer === undefined) throw new Skip('no --other-issuer was given');
        const grant = await issuer.token();
        const url = issuer.endpoint('credential_endpoint').replace(issuer.id, otherIssuer);
        if (!url.startsWith(otherIssuer)) throw new Skip('the other issuer has its endpoint elsewhere');
        return issuer.resource(url, grant, await issuer.goodBody(grant));
      },
    },
    {
      name: 'a token for a key that another proof names',
      section: 'RFC 9449 section 6',
      why: 'the key is that of the token request',
      safe: denied('invalid_token', 'invalid_dpop_proof'),
      async run(issuer) {
        const grant = await issuer.token();
        if (!issuer.boundTokens) throw new Skip('tokens are not bound');
        return issuer.credential({ ...grant, key: newKey() }, await issuer.goodBody(grant));
      },
    },
    {
      name: 'a token whose life has no end',
      section: 'RFC 9068 section 2.2',
      why: 'what is stolen must become worthless',
      safe: { status: [200] },
      async run(issuer) {
        const { accessToken, response } = await issuer.token();
        const life = accessToken.split('.').length === 3 ? Number(payloadOf(accessToken).exp) - now() : Number(response.expires_in);
        if (Number.isNaN(life)) return { outcome: 'unclear', seen: 'the server does not say' };
        return { outcome: life <= 86_400 ? 'held' : 'open', seen: `${life} seconds` };
      },
    },
  ],
};
