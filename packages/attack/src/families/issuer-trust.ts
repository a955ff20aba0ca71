import type { Family } from '../core/case.ts';
import { selfMade } from '../core/certificate.ts';
import { headerOf, makeJwt, newKey, payloadOf, withPayload } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import { type Held, heldFromFiles } from '../targets/held.ts';
import type { Asked } from '../targets/requests.ts';
import type { CardBend } from '../targets/sd-jwt.ts';
import { queryOf, type Verifier } from '../targets/verifier.ts';
import { answered, card, presentsCard } from './presenting.ts';

const REFUSED = { status: [400] } as const;

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
      section: 'SD-JWT VC section 2.5',
      why: 'a credential counts by who issued it, and anybody can make one',
      safe: REFUSED,
    },
    {
      'a certificate of its own': card(forged((own) => ({ x5c: [own] }))),
      'a certificate of its own before the right chain': card(forged((own, theirs) => ({ x5c: [own, ...theirs] }))),
      'the right chain and another signature': card(forged((_, theirs) => ({ x5c: theirs }))),
      'a key in the header': card(forged(() => ({ jwk: newKey().jwk, x5c: undefined }))),
      'a chain that is empty': card(forged(() => ({ x5c: [] }))),
      'a chain of nonsense': card(forged(() => ({ x5c: ['AAAA'] }))),
      'no chain, and an issuer by name': card(forged(() => ({ x5c: undefined, kid: '1' }), { iss: 'https://issuer.example' })),
      'a DID of its own': card(forged(() => ({ x5c: undefined, kid: 'did:jwk:e30#0' }), { iss: 'did:jwk:e30' })),
      'a chain that is a text': card(forged((own) => ({ x5c: own }))),
      'the right chain in another order': card(forged((own, theirs) => ({ x5c: [...theirs].reverse().concat(own) }))),
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
  title: 'Credentials that were revoked or have expired',
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
      'a credential that has expired': answered(async (verifier, asked) => {
        const { 'expired-credential': file, 'expired-holder-key': key } = verifier.options;
        if (file === undefined || key === undefined) throw new Skip('no --expired-credential was given');
        const text = await verifier.card(asked, {}, heldFromFiles(file, key));
        return verifier.answer(asked, { [queryOf(asked).id]: [text] });
      }),
      'a revoked credential with the status of a good one': answered(async (verifier, asked) => {
        const good = await verifier.held(asked);
        const held = await revokedOne(verifier, asked);
        const { status: theirs } = payloadOf(good.text.split('~')[0] ?? '');
        return verifier.answer(asked, {
          [queryOf(asked).id]: [await verifier.card(asked, { jwt: (jwt) => withPayload(jwt, { status: theirs }) }, held)],
        });
      }),
    },
  ),
};
