import { jsonOfBase64 } from '../../../wallet/src/core/formats/base64.ts';
import type { Family } from '../core/case.ts';
import { headerOf, newKey, now, symmetric, unsigned, withBrokenSignature, withPayload } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import { disclosure } from '../targets/sd-jwt.ts';
import { queryOf, type Verifier } from '../targets/verifier.ts';
import { card, presentsCard } from './presenting.ts';

const REFUSED = { status: [400] } as const;

export const disclosures: Family<Verifier> = {
  id: 'disclosures',
  title: "Disclosures and the issuer's part of SD-JWT presentations",
  control: presentsCard,
  cases: [
    ...table<Verifier>(
      { section: 'RFC 9901 section 7.1', why: 'what the issuer did not sign is not said by it', safe: REFUSED },
      {
        'a claim of its own': card({ disclosures: (disclosures) => [...disclosures, disclosure('salt', 'admin', true)] }),
        'a claim of its own in place of the one that is asked for': card((_, request) => ({
          disclosures: () => (queryOf(request).claims ?? []).map(({ path }: { path: unknown[] }) => disclosure('salt', path[0], 'forged')),
        })),
        'a disclosure twice': card({
          disclosures: (disclosures) => {
            if (disclosures.length === 0) throw new Skip('nothing is disclosed');
            return [...disclosures, ...disclosures.slice(0, 1)];
          },
        }),
        'a changed disclosure': card({
          disclosures: ([firstDisclosure, ...otherDisclosures]) => {
            if (firstDisclosure === undefined) throw new Skip('nothing is disclosed');
            const [salt, name] = jsonOfBase64(firstDisclosure) as string[];
            return [disclosure(salt, name, 'forged'), ...otherDisclosures];
          },
        }),
        'nothing of what is asked for': card((_, request) => {
          if ((queryOf(request).claims ?? []).length === 0) throw new Skip('no claim is asked for');
          return { disclosures: () => [] };
        }),
        'an empty disclosure': card({ disclosures: (disclosures) => [...disclosures, ''] }),
        'a disclosure that is no list': card({ disclosures: (disclosures) => [...disclosures, Buffer.from('{}').toString('base64url')] }),
        'a disclosure of the status': card({ disclosures: (disclosures) => [...disclosures, disclosure('salt', 'status', {})] }),
        'a disclosure of digests': card({ disclosures: (disclosures) => [...disclosures, disclosure('salt', '_sd', [])] }),
        'ten thousand disclosures': card({
          disclosures: (disclosures) => [...disclosures, ...Array.from({ length: 10_000 }, (_, i) => disclosure(`${i}`, 'x', i))],
        }),
        'a disclosure that came after the key binding': card({
          after: (text) => {
            const separator = text.lastIndexOf('~');
            return `${text.slice(0, separator)}~${disclosure('salt', 'admin', true)}${text.slice(separator)}`;
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
        'an issuer by HS256': card({ jwt: (jwt) => symmetric(jwt, String(headerOf(jwt).x5c?.[0] ?? 'secret')) }),
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
