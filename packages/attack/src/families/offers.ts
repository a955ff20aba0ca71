import { anyRefusal, bad, type Family, held, open } from '../core/case.ts';
import { newKey } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { Issuer } from '../targets/issuer.ts';
import { obtainToken } from './common.ts';

/** The offer's address with another last segment. */
async function siblingAddress(issuer: Issuer, lastSegment: string): Promise<string> {
  const { address } = await issuer.source('pre').next();
  if (address === undefined) throw new Skip('offers stand in their links');
  return address.slice(0, address.lastIndexOf('/') + 1) + lastSegment;
}
const fetched = async (issuer: Issuer, method: string) => {
  const { address } = await issuer.source('pre').next();
  if (address === undefined) throw new Skip('offers stand in their links');
  return issuer.http.call(address, { method });
};

export const offers: Family<Issuer> = {
  id: 'offers',
  title: 'Credential offers',
  control: obtainToken,
  cases: [
    ...table<Issuer>(
      { section: 'OpenID4VCI 1.0 section 4.1.3', why: 'an offer is found by its own address alone', safe: { status: [400, 404, 410] } },
      {
        'an offer that was guessed': async (issuer) => issuer.http.call(await siblingAddress(issuer, 'guessed')),
        'an offer by a pattern': async (issuer) => issuer.http.call(await siblingAddress(issuer, '%25')),
        'an offer with a NUL in its name': async (issuer) => issuer.http.call(await siblingAddress(issuer, 'a%00b')),
        'an offer with a very long name': async (issuer) => issuer.http.call(await siblingAddress(issuer, 'x'.repeat(3000))),
        'an offer by a query for databases': async (issuer) => issuer.http.call(await siblingAddress(issuer, "'%20or%20'1'='1")),
      },
    ),
    ...table<Issuer>(
      { section: 'RFC 9110 section 15.5.6', why: 'an offer is read and nothing else', safe: { status: [404, 405] } },
      { 'POST to an offer': (issuer) => fetched(issuer, 'POST'), 'DELETE of an offer': (issuer) => fetched(issuer, 'DELETE') },
    ),
    {
      name: 'an offer that caches may keep',
      section: 'OpenID4VCI 1.0 section 4.1.3',
      why: 'a code in a cache is a code for others',
      safe: { status: [200] },
      async run(issuer) {
        const { headers } = await fetched(issuer, 'GET');
        const said = headers['cache-control'] ?? 'no Cache-Control';
        return /no-store/.test(said) ? held(said) : open(said);
      },
    },
    {
      name: 'two offers with one code',
      section: 'OpenID4VCI 1.0 section 4.1.1',
      why: 'each offer has a code of its own',
      safe: bad('invalid_grant'),
      async run(issuer) {
        const [firstLink, secondLink] = [await issuer.source('pre').next(), await issuer.source('pre').next()];
        return firstLink.preCode === secondLink.preCode ? open('the same code twice') : held('two codes');
      },
    },
    {
      name: 'a code of few characters',
      section: 'RFC 6819 section 5.1.4.2.2',
      why: 'codes have 128 bits that nobody guesses',
      safe: { status: [200] },
      async run(issuer) {
        const { preCode } = await issuer.source('pre').next();
        return preCode.length >= 22 ? held(`${preCode.length} characters`) : open(`${preCode.length} characters`);
      },
    },
    {
      name: 'an offer after its code was used',
      section: 'OpenID4VCI 1.0 section 4.1.1',
      why: 'one offer leads to one token',
      safe: bad('invalid_grant'),
      async run(issuer) {
        const { offer } = await issuer.token();
        if (offer.address !== undefined) await issuer.http.call(offer.address);
        return issuer.tokenRequest(issuer.redemption(offer), { key: newKey() });
      },
    },
    {
      name: 'offers are answered without a type that pages run',
      section: 'OpenID4VCI 1.0 section 4.1.3',
      why: 'text of an offer is not a page',
      safe: anyRefusal,
      async run(issuer) {
        const { headers } = await fetched(issuer, 'GET');
        const type = headers['content-type'] ?? 'no type';
        return type.startsWith('application/json') ? held(type) : open(type);
      },
    },
  ],
};
