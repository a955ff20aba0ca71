import { hash } from 'node:crypto';
import { expect } from 'chai';
import type { CompiledClaim, CompiledCredentialQuery } from '../../../domain/verification/dcql/compile.ts';
import { missingClaims, peek } from '../../../domain/verification/trial/peek.ts';

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Nobody signed it: whoever pastes it needs no issuer. */
function unsigned(lists: number): string {
  const disclosures = Array.from({ length: lists }, (_, index) =>
    encoded([`salt-${index}`, Array(600).fill({})]),
  );
  const all = disclosures.map((text) => ({ '...': hash('sha256', text, 'base64url') }));
  const header = encoded({ alg: 'ES256', typ: 'dc+sd-jwt' });
  return `${header}.${encoded({ vct: 'urn:card:1', all })}.${'A'.repeat(86)}~${disclosures.join('~')}~`;
}

describe('A large text that a question is tried with', () => {
  it('is looked at once for each claim, however many sets name it', () => {
    let looks = 0;
    const claims = new Proxy(
      {},
      {
        getOwnPropertyDescriptor: () => {
          looks++;
          return undefined;
        },
      },
    );
    const asked = ['a', 'b', 'c', 'd'].map((name) => ({ path: [name] }) as unknown as CompiledClaim);
    const claimSets = asked.map((one) => asked.filter((other) => other !== one));
    const query = { claimSets } as unknown as CompiledCredentialQuery;
    const missing = missingClaims(query, { format: 'dc+sd-jwt', types: [], claims });
    expect(missing).to.deep.equal([['b'], ['c'], ['d']]);
    expect(looks).to.equal(4);
  });

  it('is not taken apart where it has more values than any credential', () => {
    expect(peek({ format: 'dc+sd-jwt', text: unsigned(10) })?.types).to.deep.equal(['urn:card:1']);
    expect(peek({ format: 'dc+sd-jwt', text: unsigned(17) })).to.equal(undefined);
  });
});
