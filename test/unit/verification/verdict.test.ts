import { expect } from 'chai';
import type { RefusalReason } from '../../../domain/shared/refusal.ts';
import { compileQuery } from '../../../domain/verification/dcql/compile.ts';
import { DcqlQuery } from '../../../domain/verification/dcql/query.ts';
import { reportOf } from '../../../domain/verification/report.ts';
import { type CheckedPresentation, judge } from '../../../domain/verification/verdict.ts';

const meta = { vct_values: ['urn:pid'] };
const format = 'dc+sd-jwt';
const ISSUER = { subject: 'CN=Issuer', fingerprint: 'f', anchor: 'a' };

const good = (queryId: string, signedHash: string): CheckedPresentation => ({
  ...{ queryId, index: 0, format, inputs: {}, accepted: true, values: { name: 'Erika' } },
  ...{ issuer: ISSUER, signedHash, confirmed: [] },
});
const bad = (queryId: string, index: number, reason: RefusalReason): CheckedPresentation => ({
  ...{ queryId, index, format, inputs: {}, accepted: false, reason, detail: 'why', spoilsAll: false },
});

describe('The verdict on a response', () => {
  const query = compileQuery(
    DcqlQuery.parse({
      credentials: [
        { id: 'card', format, meta, multiple: true },
        { id: 'other', format, meta },
      ],
      credential_sets: [{ options: [['card']] }, { options: [['other']], required: false }],
    }),
  );

  it('says nothing of an optional credential that nobody sent', () => {
    const { good: isGood, credentials } = judge(query, [good('card', 'h')], []);
    expect(isGood).to.equal(true);
    expect(credentials).to.deep.equal([{ id: 'card', values: [{ name: 'Erika' }], issuer: [ISSUER] }]);
  });

  it('tells of each that was refused for what it was refused, and of no other credential for it', () => {
    const refused = [bad('card', 0, 'kb_signature'), bad('card', 1, 'credential_expired')];
    const { report, reasons } = judge(query, [...refused, bad('other', 0, 'nonce_mismatch')], []);
    expect(reasons).to.deep.equal([
      'card: kb_signature',
      'card: credential_expired',
      'other: nonce_mismatch',
      'missing credential_sets[0]',
    ]);
    const said = report.filter(({ result }) => result === 'failed').map(({ reason }) => reason);
    expect(said).to.deep.equal([
      'kb_signature',
      'credential_expired',
      'nonce_mismatch',
      'missing credential_sets[0]',
    ]);
  });
});

describe('The report on a presentation', () => {
  const rowsOf = (inputs: object, reason?: RefusalReason) =>
    reportOf(
      { queryId: 'card', index: 0, format, inputs },
      reason === undefined ? undefined : { reason, detail: 'why' },
    );
  const namesOf = (...given: Parameters<typeof rowsOf>) => rowsOf(...given).map(({ check }) => check);

  it('names the revocation of certificates only where somebody was asked, or it refused', () => {
    expect(namesOf({})).to.include('status').and.not.include('certificate revocation');
    expect(namesOf({ 'certificate revocation': 'a list' })).to.include('certificate revocation');
    expect(namesOf({}, 'certificate_revoked').at(-1)).to.equal('certificate revocation');
  });

  it('says what was looked at where that is known', () => {
    const [form, binding] = rowsOf({ form: 'a credential' });
    expect(form).to.deep.equal({
      ...{ id: 'card', index: 0, check: 'form', input: 'a credential', result: 'passed' },
      section: 'RFC 9901 section 4',
    });
    expect(binding).to.not.have.property('input');
  });
});
