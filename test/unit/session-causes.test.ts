import { expect } from 'chai';
import { causeOf, originOf, titleOf } from '../../adapters/http/console/app/pages/sessions/causes.ts';
import { cureOf } from '../../adapters/http/console/app/pages/sessions/cures.ts';
import type { Check } from '../../adapters/http/console/app/pages/sessions/session-record.ts';

const failed = (check: string, reason: string, id?: string): Check => ({
  ...{ check, reason, result: 'failed', section: 'somewhere' },
  ...(id !== undefined && { id }),
});

describe('what the console says follows from a fault', () => {
  const changed = failed('elements', 'digest_mismatch', 'licence');
  const missing = failed('response', 'missing licence');

  it('is that a query has no answer whose only presentation was refused', () => {
    expect(originOf(missing, [changed, missing])).to.equal(changed);
    expect(originOf(changed, [changed, missing])).to.equal(undefined);
    expect(titleOf(changed)).to.equal('licence: elements');
  });

  it('is that a set is incomplete, and what is said once more', () => {
    const set = failed('response', 'missing credential_sets[0]');
    const [nonce, again] = [failed('nonce', 'nonce_mismatch', 'a'), failed('response', 'nonce_mismatch')];
    expect(originOf(set, [changed, set])).to.equal(changed);
    expect(originOf(again, [nonce, again])).to.equal(nonce);
  });

  it('is nothing where another query was not answered at all', () => {
    const other = failed('response', 'missing diploma');
    expect(originOf(other, [changed, other])).to.equal(undefined);
    expect(causeOf('missing diploma')).to.equal(
      'no good presentation came for “diploma”, which the question requires',
    );
    expect(cureOf('missing diploma').at, 'the question asks for what the wallet has not').to.equal(
      'question',
    );
  });

  it('has nobody issue anew what somebody changed on its way', () => {
    for (const reason of ['digest_mismatch', 'unreferenced_disclosure', 'issuer_signature'])
      expect(cureOf(reason).what).to.match(/^Do not go by it/);
  });
});
