import { type Family, Skip } from '../core/case.ts';
import { selfMade } from '../core/certificate.ts';
import {
  headerOf,
  makeJwt,
  newKey,
  now,
  payloadOf,
  sha256,
  symmetric,
  unsigned,
  withBrokenSignature,
  withPayload,
} from '../core/jwt.ts';
import { table } from '../core/table.ts';
import { type Held, heldFromFiles } from '../targets/held.ts';
import type { Asked } from '../targets/requests.ts';
import { type CardBend, disclosure } from '../targets/sd-jwt.ts';
import { queryOf, type Verifier } from '../targets/verifier.ts';
import { answered, card, presentsCard } from './presenting.ts';

const REFUSED = { status: [400] } as const;
const kb = (payload: object, header: object = {}) => card({ keyBinding: { payload, header } });

export const keyBinding: Family<Verifier> = {
  id: 'key-binding',
  title: 'Key binding of SD-JWT presentations',
  control: presentsCard,
  cases: [
    ...table<Verifier>(
      {
        section: 'RFC 9901 section 7.3',
        why: 'a credential is shown by its holder, for this request, now',
        safe: REFUSED,
      },
      {
        'no key binding': card({ kb: () => '' }),
        'no key binding and no last tilde': card({ kb: () => '', after: (text) => text.slice(0, -1) }),
        'the key of another': card(() => ({ key: newKey() })),
        'the key of another, which stands in its header': card(() => {
          const key = newKey();
          return { key, keyBinding: { header: { jwk: key.jwk } } };
        }),
        'alg none': card({ kb: unsigned }),
        'HS256 by the public key': card(async (verifier, asked) => {
          const { key } = await verifier.held(asked);
          return { kb: (text) => symmetric(text, JSON.stringify(key.jwk)) };
        }),
        'a broken signature': card({ kb: withBrokenSignature }),
        'typ JWT': kb({}, { typ: 'JWT' }),
        'no typ': kb({}, { typ: undefined }),
        'an extension that nobody knows': kb({}, { crit: ['x'], x: 1 }),
        'two key bindings': card({ after: (text) => `${text}~${text.slice(text.lastIndexOf('~') + 1)}` }),
      },
    ),
    ...table<Verifier>(
      {
        section: 'OpenID4VP 1.0 section 14.1',
        why: 'what was shown to others, or earlier, is not shown to this verifier',
        safe: REFUSED,
      },
      {
        'another nonce': kb({ nonce: 'another' }),
        'no nonce': kb({ nonce: undefined }),
        'the nonce in a list': card((_, { payload }) => ({
          keyBinding: { payload: { nonce: [payload.nonce] } },
        })),
        'the nonce of another request': card(async (verifier) => ({
          keyBinding: { payload: { nonce: (await verifier.ask()).payload.nonce } },
        })),
        'another audience': kb({ aud: 'https://other.example' }),
        'no audience': kb({ aud: undefined }),
        'the audience among others': card((_, { payload }) => ({
          keyBinding: { payload: { aud: [payload.client_id, 'other'] } },
        })),
        'the address of the answer as audience': card((_, { payload }) => ({
          keyBinding: { payload: { aud: payload.response_uri } },
        })),
        'the audience without its prefix': card((_, { payload }) => ({
          keyBinding: { payload: { aud: String(payload.client_id).replace(/^[a-z0-9_]+:/, '') || 'x' } },
        })),
        'an iat of a year ago': kb({ iat: now() - 31_536_000 }),
        'an iat of tomorrow': kb({ iat: now() + 86_400 }),
        'no iat': kb({ iat: undefined }),
        'an iat that is a text': kb({ iat: String(now()) }),
        'no sd_hash': kb({ sd_hash: undefined }),
        'another sd_hash': kb({ sd_hash: sha256('another') }),
        "the sd_hash of the issuer's part alone": card(async (verifier, asked) => {
          const [jwt = ''] = (await verifier.held(asked)).text.split('~');
          return { keyBinding: { payload: { sd_hash: sha256(jwt) } } };
        }),
      },
    ),
  ],
};

export const disclosures: Family<Verifier> = {
  id: 'disclosures',
  title: "Disclosures and the issuer's part of SD-JWT presentations",
  control: presentsCard,
  cases: [
    ...table<Verifier>(
      {
        section: 'RFC 9901 section 7.1',
        why: 'what the issuer did not sign is not said by it',
        safe: REFUSED,
      },
      {
        'a claim of its own': card({ disclosures: (shown) => [...shown, disclosure('salt', 'admin', true)] }),
        'a claim of its own in place of the one that is asked for': card((_, asked) => ({
          disclosures: () =>
            (queryOf(asked).claims ?? []).map(({ path }: { path: unknown[] }) =>
              disclosure('salt', path[0], 'forged'),
            ),
        })),
        'a disclosure twice': card({
          disclosures: (shown) => {
            if (shown.length === 0) throw new Skip('nothing is disclosed');
            return [...shown, ...shown.slice(0, 1)];
          },
        }),
        'a changed disclosure': card({
          disclosures: ([first, ...rest]) => {
            if (first === undefined) throw new Skip('nothing is disclosed');
            const [salt, name] = JSON.parse(Buffer.from(first, 'base64url').toString());
            return [disclosure(salt, name, 'forged'), ...rest];
          },
        }),
        'nothing of what is asked for': card((_, asked) => {
          if ((queryOf(asked).claims ?? []).length === 0) throw new Skip('no claim is asked for');
          return { disclosures: () => [] };
        }),
        'an empty disclosure': card({ disclosures: (shown) => [...shown, ''] }),
        'a disclosure that is no list': card({
          disclosures: (shown) => [...shown, Buffer.from('{}').toString('base64url')],
        }),
        'a disclosure of the status': card({
          disclosures: (shown) => [...shown, disclosure('salt', 'status', {})],
        }),
        'a disclosure of digests': card({
          disclosures: (shown) => [...shown, disclosure('salt', '_sd', [])],
        }),
        'ten thousand disclosures': card({
          disclosures: (shown) => [
            ...shown,
            ...Array.from({ length: 10_000 }, (_, i) => disclosure(`${i}`, 'x', i)),
          ],
        }),
        'a disclosure that came after the key binding': card({
          after: (text) => {
            const at = text.lastIndexOf('~');
            return `${text.slice(0, at)}~${disclosure('salt', 'admin', true)}${text.slice(at)}`;
          },
        }),
        'a disclosure that was taken out after the key binding': card({
          after: (text) => {
            const parts = text.split('~');
            if (parts.length < 3) throw new Skip('nothing is disclosed');
            return [parts[0], ...parts.slice(2)].join('~');
          },
        }),
      },
    ),
    ...table<Verifier>(
      { section: 'RFC 9901 section 7.1', why: "the issuer's part is what it signed", safe: REFUSED },
      {
        'an issuer without a signature': card({ jwt: unsigned }),
        'an issuer by HS256': card({
          jwt: (jwt) => symmetric(jwt, String(headerOf(jwt).x5c?.[0] ?? 'secret')),
        }),
        'a broken signature of the issuer': card({ jwt: withBrokenSignature }),
        'a life that is longer': card({ jwt: (jwt) => withPayload(jwt, { exp: now() + 1_000_000_000 }) }),
        'another type': card({ jwt: (jwt) => withPayload(jwt, { vct: 'urn:other:1' }) }),
        'a status that is left out': card({ jwt: (jwt) => withPayload(jwt, { status: undefined }) }),
        'a claim that stands there in the clear': card({ jwt: (jwt) => withPayload(jwt, { admin: true }) }),
        "a holder's key of the thief": card(() => {
          const key = newKey();
          return { key, jwt: (jwt) => withPayload(jwt, { cnf: { jwk: key.jwk } }) };
        }),
        'a credential that is no JWT': card({ jwt: () => 'nonsense' }),
      },
    ),
  ],
};

/** The credential as an issuer would have signed it that nobody trusts. */
const forged =
  (
    header: (own: string, theirs: readonly string[]) => object,
    payload: object = {},
  ): ((verifier: Verifier, asked: Asked) => Promise<CardBend>) =>
  async () => {
    const issuer = newKey();
    const own = await selfMade(issuer, 'CN=Issuer');
    return {
      jwt: (jwt) => {
        const { x5c = [], ...rest } = headerOf(jwt);
        return makeJwt(issuer, { ...rest, ...header(own, x5c) }, { ...payloadOf(jwt), ...payload });
      },
    };
  };

export const issuerTrust: Family<Verifier> = {
  id: 'issuer-trust',
  title: 'Issuers that nobody trusts',
  control: presentsCard,
  cases: table<Verifier>(
    {
      section: 'SD-JWT VC section 3.5',
      why: 'a credential counts by who issued it, and anybody can make one',
      safe: REFUSED,
    },
    {
      'a certificate of its own': card(forged((own) => ({ x5c: [own] }))),
      'a certificate of its own before the right chain': card(
        forged((own, theirs) => ({ x5c: [own, ...theirs] })),
      ),
      'the right chain and another signature': card(forged((_, theirs) => ({ x5c: theirs }))),
      'a key in the header': card(forged(() => ({ jwk: newKey().jwk, x5c: undefined }))),
      'a chain that is empty': card(forged(() => ({ x5c: [] }))),
      'a chain of nonsense': card(forged(() => ({ x5c: ['AAAA'] }))),
      'no chain, and an issuer by name': card(
        forged(() => ({ x5c: undefined, kid: '1' }), { iss: 'https://issuer.example' }),
      ),
      'a DID of its own': card(
        forged(() => ({ x5c: undefined, kid: 'did:jwk:e30#0' }), { iss: 'did:jwk:e30' }),
      ),
      'a chain that is a text': card(forged((own) => ({ x5c: own }))),
      'the right chain in another order': card(
        forged((own, theirs) => ({ x5c: [...theirs].reverse().concat(own) })),
      ),
    },
  ),
};

/** A credential that was good once. */
async function revokedOne(verifier: Verifier, asked: Asked): Promise<Held> {
  const { 'revoked-credential': file, 'revoked-holder-key': key } = verifier.options;
  if (file !== undefined && key !== undefined) return heldFromFiles(file, key);
  if (verifier.api === undefined) throw new Skip('no --revoked-credential was given');
  const held = await verifier.freshCredential(queryOf(asked));
  if (!('status' in payloadOf(held.text.split('~')[0] ?? ''))) throw new Skip('the credential has no status');
  const answer = await verifier.api.call('POST', '/session/revoke', { sessionId: held.session, status: 1 });
  if (answer.status >= 300) throw new Skip(`revoking is not allowed: ${answer.status}`);
  await verifier.api.call('DELETE', '/cache/status-list');
  return held;
}

export const status: Family<Verifier> = {
  id: 'status',
  title: 'Credentials that were revoked',
  control: presentsCard,
  cases: table<Verifier>(
    {
      section: 'Token Status List section 8.3',
      why: 'what its issuer took back does not count',
      safe: REFUSED,
    },
    {
      'a credential that was revoked': answered(async (verifier, asked) => {
        const held = await revokedOne(verifier, asked);
        return verifier.answer(asked, { [queryOf(asked).id]: [await verifier.card(asked, {}, held)] });
      }),
      'a revoked credential with the status of a good one': answered(async (verifier, asked) => {
        const good = await verifier.held(asked);
        const held = await revokedOne(verifier, asked);
        const { status: theirs } = payloadOf(good.text.split('~')[0] ?? '');
        return verifier.answer(asked, {
          [queryOf(asked).id]: [
            await verifier.card(asked, { jwt: (jwt) => withPayload(jwt, { status: theirs }) }, held),
          ],
        });
      }),
    },
  ),
};
