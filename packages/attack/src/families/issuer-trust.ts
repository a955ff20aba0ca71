import type { Family } from '../core/case.ts';
import { selfSignedCertificate } from '../core/certificate.ts';
import { headerOf, makeJwt, newKey, payloadOf, withPayload } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import { type HeldCredential, heldFromFiles } from '../targets/held-credential.ts';
import type { FetchedRequest } from '../targets/requests.ts';
import type { CardAlteration } from '../targets/sd-jwt.ts';
import { queryOf, type Verifier } from '../targets/verifier.ts';
import { answerWith, card, presentsCard } from './presenting.ts';

const REFUSED = { status: [400] } as const;

/** The credential as signed by an untrusted issuer. */
const forged =
  (
    header: (attackerCertificate: string, theirs: readonly string[]) => object,
    payload: object = {},
  ): ((verifier: Verifier, request: FetchedRequest) => Promise<CardAlteration>) =>
  async () => {
    const issuer = newKey();
    const attackerCertificate = await selfSignedCertificate(issuer, 'CN=Issuer');
    return {
      jwt: (jwt) => {
        const { x5c = [], ...otherHeaders } = headerOf(jwt);
        return makeJwt(issuer, { ...otherHeaders, ...header(attackerCertificate, x5c) }, { ...payloadOf(jwt), ...payload });
      },
    };
  };

export const issuerTrust: Family<Verifier> = {
  id: 'issuer-trust',
  title: 'Untrusted issuers',
  control: presentsCard,
  cases: table<Verifier>(
    { section: 'SD-JWT VC section 2.5', why: 'a credential counts by who issued it, and anybody can make one', safe: REFUSED },
    {
      'a certificate of its own': card(forged((certificate) => ({ x5c: [certificate] }))),
      'a certificate of its own before the right chain': card(forged((certificate, theirs) => ({ x5c: [certificate, ...theirs] }))),
      'the right chain and another signature': card(forged((_, theirs) => ({ x5c: theirs }))),
      'a key in the header': card(forged(() => ({ jwk: newKey().jwk, x5c: undefined }))),
      'a chain that is empty': card(forged(() => ({ x5c: [] }))),
      'a chain of nonsense': card(forged(() => ({ x5c: ['AAAA'] }))),
      'no chain, and an issuer by name': card(forged(() => ({ x5c: undefined, kid: '1' }), { iss: 'https://issuer.example' })),
      'a DID of its own': card(forged(() => ({ x5c: undefined, kid: 'did:jwk:e30#0' }), { iss: 'did:jwk:e30' })),
      'a chain that is a text': card(forged((certificate) => ({ x5c: certificate }))),
      'the right chain in another order': card(forged((certificate, theirs) => ({ x5c: [...theirs].reverse().concat(certificate) }))),
    },
  ),
};

/** A credential that was valid before. */
async function revokedOne(verifier: Verifier, request: FetchedRequest): Promise<HeldCredential> {
  const { 'revoked-credential': file, 'revoked-holder-key': key } = verifier.options;
  if (file !== undefined && key !== undefined) return heldFromFiles(file, key);
  if (verifier.api === undefined) throw new Skip('no --revoked-credential was given');
  const held = await verifier.freshCredential(queryOf(request));
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
    { section: 'Token Status List section 8.3', why: 'what its issuer took back does not count', safe: REFUSED },
    {
      'a credential that was revoked': answerWith(async (verifier, request) => {
        const held = await revokedOne(verifier, request);
        return verifier.answer(request, { [queryOf(request).id]: [await verifier.card(request, {}, held)] });
      }),
      'a credential that has expired': answerWith(async (verifier, request) => {
        const { 'expired-credential': file, 'expired-holder-key': key } = verifier.options;
        if (file === undefined || key === undefined) throw new Skip('no --expired-credential was given');
        const text = await verifier.card(request, {}, heldFromFiles(file, key));
        return verifier.answer(request, { [queryOf(request).id]: [text] });
      }),
      'a revoked credential with the status of a good one': answerWith(async (verifier, request) => {
        const good = await verifier.held(request);
        const held = await revokedOne(verifier, request);
        const { status: theirs } = payloadOf(good.text.split('~')[0] ?? '');
        return verifier.answer(request, {
          [queryOf(request).id]: [await verifier.card(request, { jwt: (jwt) => withPayload(jwt, { status: theirs }) }, held)],
        });
      }),
    },
  ),
};
