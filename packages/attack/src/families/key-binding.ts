import type { Family } from '../core/case.ts';
import { newKey, now, sha256, symmetric, unsigned, withBrokenSignature } from '../core/jwt.ts';
import { table } from '../core/table.ts';
import type { Verifier } from '../targets/verifier.ts';
import { card, presentsCard } from './presenting.ts';

const REFUSED = { status: [400] } as const;
const kb = (payload: object, header: object = {}) => card({ keyBinding: { payload, header } });

export const keyBinding: Family<Verifier> = {
  id: 'key-binding',
  title: 'Key binding of SD-JWT presentations',
  control: presentsCard,
  cases: [
    ...table<Verifier>(
      { section: 'RFC 9901 section 7.3', why: 'a credential is shown by its holder, for this request, now', safe: REFUSED },
      {
        'no key binding': card({ kb: () => '' }),
        'no key binding and no last tilde': card({ kb: () => '', after: (text) => text.slice(0, -1) }),
        'the key of another': card(() => ({ key: newKey() })),
        'the key of another, which stands in its header': card(() => {
          const key = newKey();
          return { key, keyBinding: { header: { jwk: key.jwk } } };
        }),
        'alg none': card({ kb: unsigned }),
        'HS256 by the public key': card(async (verifier, request) => {
          const { key } = await verifier.held(request);
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
      { section: 'OpenID4VP 1.0 section 14.1', why: 'what was shown to others, or earlier, is not shown to this verifier', safe: REFUSED },
      {
        'another nonce': kb({ nonce: 'another' }),
        'no nonce': kb({ nonce: undefined }),
        'the nonce in a list': card((_, { payload }) => ({ keyBinding: { payload: { nonce: [payload.nonce] } } })),
        'the nonce of another request': card(async (verifier) => ({
          keyBinding: { payload: { nonce: (await verifier.ask()).payload.nonce } },
        })),
        'another audience': kb({ aud: 'https://other.example' }),
        'no audience': kb({ aud: undefined }),
        'the audience among others': card((_, { payload }) => ({ keyBinding: { payload: { aud: [payload.client_id, 'other'] } } })),
        'the address of the answer as audience': card((_, { payload }) => ({ keyBinding: { payload: { aud: payload.response_uri } } })),
        'the audience without its prefix': card((_, { payload }) => ({
          keyBinding: { payload: { aud: String(payload.client_id).replace(/^[a-z0-9_]+:/, '') || 'x' } },
        })),
        'an iat of a year ago': kb({ iat: now() - 31_536_000 }),
        'an iat of tomorrow': kb({ iat: now() + 86_400 }),
        'no iat': kb({ iat: undefined }),
        'an iat that is a text': kb({ iat: String(now()) }),
        'no sd_hash': kb({ sd_hash: undefined }),
        'another sd_hash': kb({ sd_hash: sha256('another') }),
        "the sd_hash of the issuer's part alone": card(async (verifier, request) => {
          const [jwt = ''] = (await verifier.held(request)).text.split('~');
          return { keyBinding: { payload: { sd_hash: sha256(jwt) } } };
        }),
      },
    ),
  ],
};
