import { expect } from 'chai';
import { defined } from '../../../domain/shared/defined.ts';
import { Failure, fieldFaults, invalidFields, invalidInput } from '../../../domain/shared/failure.ts';
import {
  assertNothingContradicts,
  assertWithin,
  contradictions,
  type Finding,
  PROFILES,
  type Profile,
  warningsOf,
} from '../../../domain/shared/finding.ts';

const WARNING = {
  profileRule: 'HAIP 1.0 section 5',
  member: 'x',
  concerns: 'wallets',
  message: 'they refuse it',
  change: 'leave it out',
};
const REFUSED: Finding = { ...WARNING, refusedBy: ['haip'] };
const FAULT = { path: 'x', message: 'profile haip (HAIP 1.0 section 5): they refuse it; leave it out' };

describe('What was found of a configuration', () => {
  it('is refused by the profile that says so, and by no other rule', () => {
    expect(contradictions([REFUSED, WARNING], 'haip')).to.deep.equal([FAULT]);
    expect(contradictions([REFUSED, WARNING], null)).to.deep.equal([]);
    expect(() => assertWithin('haip', [REFUSED])).to.throw(Failure, `x: ${FAULT.message}`);
    for (const [profile, findings] of [
      [null, [REFUSED]],
      ['haip', [WARNING]],
      ['haip', []],
    ] as const) {
      expect(() => assertWithin(profile, findings)).to.not.throw();
    }
  });

  it('is a warning of a tenant with a profile, with the section of HAIP', () => {
    const { profileRule: rule, ...others } = WARNING;
    for (const profile of PROFILES)
      expect(warningsOf([REFUSED, WARNING], profile)).to.deep.equal([
        { rule, ...others },
        { rule, ...others },
      ]);
  });

  it('is no warning of a tenant without a profile if only HAIP demands it', () => {
    expect(warningsOf([REFUSED, WARNING], null)).to.deep.equal([]);
  });

  it('is a warning of every tenant if another rule demands it, and names HAIP under a profile only', () => {
    const rule = 'OpenID4VP 1.0 section 14.3';
    const shared: Finding = { ...REFUSED, rule };
    const ruleOf = (profile: Profile | null) => warningsOf([shared], profile).map((each) => each.rule);
    expect(ruleOf(null)).to.deep.equal([rule]);
    expect(ruleOf('haip')).to.deep.equal([`HAIP 1.0 section 5, ${rule}`]);
    const [fault] = contradictions([shared], 'haip');
    expect(fault?.message).to.match(/^profile haip \(HAIP 1\.0 section 5, OpenID4VP 1\.0 section 14\.3\): /);
  });

  it('keeps a tenant from taking a profile on, fifty faults at a time', () => {
    expect(() => assertNothingContradicts('haip', [])).to.not.throw();
    try {
      assertNothingContradicts('haip', Array(60).fill(FAULT));
      expect.fail('taken');
    } catch (error) {
      expect(error).to.be.instanceOf(Failure);
      const { code, details } = error as Failure;
      expect([code, details.errors?.length]).to.deep.equal(['conflict', 50]);
    }
  });
});

describe('A failure', () => {
  it('says what its caller may know, and its code where that is nothing', () => {
    expect(new Failure('conflict', 'taken already')).to.deep.include({
      message: 'taken already',
      details: { message: 'taken already' },
    });
    expect(new Failure('conflict').message).to.equal('conflict');
    expect(new Failure('conflict', { retryAfterSeconds: 1 }).message).to.equal('conflict');
  });

  it('may have what is defined and nothing else', () => {
    expect(defined({ a: undefined, b: null, c: 0 })).to.deep.equal({ b: null, c: 0 });
    expect(defined({ a: undefined })).to.not.have.property('a');
  });
});

describe('The faults of fields', () => {
  it('are said in the message, of a field or of the whole', () => {
    const missing = { path: 'a.b', message: 'is missing' };
    expect(invalidFields([missing]).message).to.equal('a.b: is missing');
    expect(invalidFields([missing, { path: 'c', message: 'is unknown' }]).message).to.equal(
      'a.b: is missing. Also c: is unknown',
    );
    expect(invalidFields([{ path: '', message: 'is missing' }]).message).to.equal('is missing');
    expect(invalidFields([]).message).to.equal('invalid');
  });

  it('are gathered below what was looked at', () => {
    const refuse = (error: Error) => () => {
      throw error;
    };
    expect(fieldFaults(refuse(invalidInput('claims.a', 'no')), 'claims')).to.deep.equal([
      { path: '.a', message: 'no' },
    ]);
    expect(fieldFaults(refuse(new Failure('conflict', 'no')))).to.deep.equal([]);
    expect(fieldFaults(() => 'fine')).to.deep.equal([]);
    expect(() => fieldFaults(refuse(new TypeError('a mistake')))).to.throw(TypeError, 'a mistake');
  });
});
