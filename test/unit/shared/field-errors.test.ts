import { expect } from 'chai';
import { z } from 'zod';
import { closestName, unknownPropertyMessage } from '../../../domain/shared/closest-name.ts';
import { defined } from '../../../domain/shared/defined.ts';
import { collectFieldErrors, Failure, invalidFields, invalidInput } from '../../../domain/shared/failure.ts';
import {
  assertConformsToProfile,
  assertNoProfileViolations,
  type Finding,
  PROFILES,
  type Profile,
  profileViolations,
  warningsOf,
} from '../../../domain/shared/finding.ts';
import { strictInput } from '../../../domain/shared/input-object.ts';
import { parseInput, safeParseInput } from '../../../domain/shared/parse-input.ts';

/** Returns the messages for a property `x`. */
const messagesOf = (schema: z.ZodType, value: unknown) => {
  const parsed = safeParseInput(z.object({ x: schema }), { x: value });
  return 'errors' in parsed ? parsed.errors.map(({ path, message }) => `${path}: ${message}`) : ['accepted'];
};

const Named = strictInput({ name: z.string(), size: z.number().optional() });
const Counted = strictInput({ count: z.number() });
const Nested = strictInput({ inner: strictInput({ id: z.string() }) });

describe('document faults', () => {
  // A wallet library in other tests sets its own error messages for the whole process.
  let customError: ReturnType<typeof z.config>['customError'];
  before(() => {
    ({ customError } = z.config());
    z.config({ customError: undefined });
  });
  after(() => {
    z.config({ customError });
  });

  const cases: readonly (readonly [string, z.ZodType, unknown, readonly string[]])[] = [
    ['a missing property', z.string(), undefined, ['x: is missing']],
    ['a missing enumeration property', z.enum(['a', 'b']), undefined, ['x: is missing']],
    ['a missing choice', z.union([z.string(), z.number()]), undefined, ['x: is missing']],
    ['a number that is invalid', z.number(), Number.NaN, ['x: is not a number']],
    ['a short text', z.string().min(2, 'two at least'), 'a', ['x: two at least']],
    ['a property below', Nested, { inner: {} }, ['x.inner.id: is missing']],
    ['two types, neither of which matches', z.union([z.string(), z.null()]), 1, ['x: expected string or null']],
    ['three types, none of which matches', z.union([z.string(), z.null(), z.boolean()]), 1, ['x: expected string, null or boolean']],
    ['one type listed twice', z.union([z.string(), z.string().max(3)]), 1, ['x: expected string']],
    ['a table or a text', z.union([z.string(), z.record(z.string(), z.string())]), 1, ['x: expected string or object']],
    ['a value of several', z.union([z.literal(['a', 'b']), z.null()]), 'c', ['x: expected a, b or null']],
    [
      'alternatives with their own messages',
      z.union([z.string().regex(/^a/, 'begins with a'), z.string().regex(/^b/, 'begins with b')]),
      'c',
      ['x: expected begins with a or begins with b'],
    ],
    ['a choice with its own message', z.union([z.string(), z.null()], { error: 'a text or nothing' }), 1, ['x: a text or nothing']],
    ['the intended alternative', z.union([z.string(), Named]), { name: 1 }, ['x.name: expected string, not number']],
    ['a short text', z.string().min(2), 'x', ['x: has to have at least 2 characters']],
    ['an overlong list', z.array(z.number()).max(1), [1, 2], ['x: has to have at most 1 entries']],
    ['a large number', z.number().max(5), 6, ['x: has to be at most 5']],
    ['a text outside of an enumeration', z.enum(['a', 'b']), 'c', ['x: expected one of a, b']],
    ['a list instead of an object', z.record(z.string(), z.string()), [], ['x: expected object, not array']],
    ['the intended nested alternative', z.union([z.string(), Nested]), { inner: {} }, ['x.inner.id: is missing']],
    ['two objects, neither of which matches', z.union([Named, Counted]), {}, ['x: expected object with name or object with count']],
    [
      'an object without required properties',
      z.union([z.string(), strictInput({ a: z.string().optional() })]),
      1,
      ['x: expected string or object'],
    ],
    [
      'the intended alternative with an unknown property',
      z.union([z.string(), Named]),
      { name: 1, nam: 'x' },
      ['x.name: expected string, not number', 'x.nam: there is no such property; did you mean name?'],
    ],
    ['an alternative without any of its properties', z.union([z.string(), Named]), {}, ['x: expected string or object with name']],
    [
      'a property unknown to two open alternatives',
      z.union([strictInput({ a: z.string().optional() }), strictInput({ b: z.string().optional() })]),
      { c: 1 },
      ['x: expected object', 'x.c: there is no such property'],
    ],
    [
      'no property that one of the alternatives knows',
      z.union([strictInput({ inner: strictInput({ id: z.string() }), other: z.string() }), Counted]),
      { inner: { id: 'a' } },
      ['x: expected object with other or object with count'],
    ],
    [
      'no nested property that one of the alternatives does not know',
      z.union([strictInput({ inner: strictInput({ id: z.string() }), other: z.string() }), Counted]),
      { inner: { id: 'a', idd: 'b' }, colour: 'red' },
      ['x: expected object with inner, other or object with count', 'x.colour: there is no such property'],
    ],
    ['two possible alternatives', z.union([Named, strictInput({ name: z.boolean() })]), { name: 1 }, ['x: expected object with name']],
    [
      'a property unknown to all alternatives, with a similar name',
      z.union([Named, Counted]),
      { nam: 'a' },
      ['x: expected object with name or object with count', 'x.nam: there is no such property; did you mean name?'],
    ],
    [
      'a property unknown to all objects, where another type is allowed',
      z.union([z.string(), Counted, Named]),
      { colour: 'red' },
      ['x: expected string, object with count or object with name', 'x.colour: there is no such property'],
    ],
    [
      'a property known to one alternative',
      z.union([Counted, Named]),
      { size: 1, colour: 'red' },
      ['x: expected object with count or object with name', 'x.colour: there is no such property'],
    ],
  ];
  for (const [description, schema, value, faults] of cases) {
    it(`name ${description}`, () => expect(messagesOf(schema, value)).to.deep.equal(faults));
  }

  it('describe NaN only for schemas that are numbers', () => {
    expect(messagesOf(z.enum(['a', 'b']), Number.NaN)[0]).to.match(/^x: .*one of/);
  });

  it('report two names of one property first', () => {
    const parsed = safeParseInput(z.object({ keyChainId: z.string() }), { certId: 'a', keyChainId: 'b' });
    expect('errors' in parsed && parsed.errors.map(({ path }) => path)).to.deep.equal(['certId']);
  });

  it('name unknown properties if the schema has its own message', () => {
    const strict = z.strictObject({ a: z.string() }, { error: () => 'nothing but a' });
    expect(messagesOf(strict, { a: 'x', b: 1, c: 2 })).to.deep.equal(['x: nothing but a']);
  });

  it('name the values of a discriminator', () => {
    const kinds = z.discriminatedUnion('kind', [z.object({ kind: z.literal('a') }), z.object({ kind: z.literal('b'), size: z.number() })]);
    expect(messagesOf(kinds, { kind: 'b' })).to.deep.equal(['x.size: is missing']);
    expect(messagesOf(kinds, { kind: 'c' })).to.have.length(1);
    expect(messagesOf(kinds, { kind: 'c' })[0]).to.match(/^x\.kind: .*'a' \| 'b'/);
  });

  it('are limited to fifty', () => {
    const parsed = safeParseInput(z.array(z.string()), Array(80).fill(1));
    expect('errors' in parsed && parsed.errors).to.have.length(50);
    const list = z.object({ x: z.array(Named) });
    const value = { x: Array(30).fill({ name: 'a', b: 1, c: 2 }) };
    const result = safeParseInput(list, value);
    expect('errors' in result && result.errors).to.have.length(50);
  });

  it('throw an error', () => {
    expect(parseInput(Named, { name: 'a' })).to.deep.equal({ name: 'a' });
    expect(() => parseInput(Named, {}))
      .to.throw(Failure, 'name: is missing')
      .with.property('code', 'invalid_input');
    expect(parseInput(z.array(z.string()), ['a']), 'of a value that is not an object').to.deep.equal(['a']);
  });
});

const WARNING = { profileRule: 'HAIP 1.0 section 5', member: 'x', concerns: 'wallets', message: 'they refuse it', change: 'leave it out' };
const REJECTED: Finding = { ...WARNING, refusedBy: ['haip'] };
const FAULT = { path: 'x', message: 'profile haip (HAIP 1.0 section 5): they refuse it; leave it out' };

describe('configuration warning', () => {
  it('is rejected only by the profile that it names', () => {
    expect(profileViolations([REJECTED, WARNING], 'haip')).to.deep.equal([FAULT]);
    expect(profileViolations([REJECTED, WARNING], null)).to.deep.equal([]);
    expect(() => assertConformsToProfile('haip', [REJECTED])).to.throw(Failure, `x: ${FAULT.message}`);
    for (const [profile, findings] of [
      [null, [REJECTED]],
      ['haip', [WARNING]],
      ['haip', []],
    ] as const) {
      expect(() => assertConformsToProfile(profile, findings)).to.not.throw();
    }
  });

  it('has the section of HAIP for a tenant with a profile', () => {
    const { profileRule: rule, ...others } = WARNING;
    for (const profile of PROFILES)
      expect(warningsOf([REJECTED, WARNING], profile)).to.deep.equal([
        { rule, ...others },
        { rule, ...others },
      ]);
  });

  it('does not exist for a tenant without a profile if only HAIP requires it', () => {
    expect(warningsOf([REJECTED, WARNING], null)).to.deep.equal([]);
  });

  it('exists for every tenant if another rule requires it, and names HAIP only under a profile', () => {
    const rule = 'OpenID4VP 1.0 section 14.3';
    const shared: Finding = { ...REJECTED, rule };
    const ruleOf = (profile: Profile | null) => warningsOf([shared], profile).map((each) => each.rule);
    expect(ruleOf(null)).to.deep.equal([rule]);
    expect(ruleOf('haip')).to.deep.equal([`HAIP 1.0 section 5, ${rule}`]);
    const [fault] = profileViolations([shared], 'haip');
    expect(fault?.message).to.match(/^profile haip \(HAIP 1\.0 section 5, OpenID4VP 1\.0 section 14\.3\): /);
  });

  it('prevents a tenant from adopting a profile, with fifty faults at a time', () => {
    expect(() => assertNoProfileViolations('haip', [])).to.not.throw();
    try {
      assertNoProfileViolations('haip', Array(60).fill(FAULT));
      expect.fail('accepted');
    } catch (error) {
      expect(error).to.be.instanceOf(Failure);
      const { code, details } = error as Failure;
      expect([code, details.errors?.length]).to.deep.equal(['conflict', 50]);
    }
  });
});

describe('failure', () => {
  it('has the message for its caller, or its code without one', () => {
    expect(new Failure('conflict', 'taken already')).to.deep.include({ message: 'taken already', details: { message: 'taken already' } });
    expect(new Failure('conflict').message).to.equal('conflict');
    expect(new Failure('conflict', { retryAfterSeconds: 1 }).message).to.equal('conflict');
  });

  it('has only the defined properties', () => {
    expect(defined({ a: undefined, b: null, c: 0 })).to.deep.equal({ b: null, c: 0 });
    expect(defined({ a: undefined })).to.not.have.property('a');
  });
});

describe('field errors', () => {
  it('are part of the message, with and without a path', () => {
    const missing = { path: 'a.b', message: 'is missing' };
    expect(invalidFields([missing]).message).to.equal('a.b: is missing');
    expect(invalidFields([missing, { path: 'c', message: 'is unknown' }]).message).to.equal('a.b: is missing. Also c: is unknown');
    expect(invalidFields([{ path: '', message: 'is missing' }]).message).to.equal('is missing');
    expect(invalidFields([]).message).to.equal('invalid');
  });

  it('are collected below the validated value', () => {
    const throwing = (error: Error) => () => {
      throw error;
    };
    expect(collectFieldErrors(throwing(invalidInput('claims.a', 'no')), 'claims')).to.deep.equal([{ path: '.a', message: 'no' }]);
    expect(collectFieldErrors(throwing(new Failure('conflict', 'no')))).to.deep.equal([]);
    expect(collectFieldErrors(() => 'fine')).to.deep.equal([]);
    expect(() => collectFieldErrors(throwing(new TypeError('a mistake')))).to.throw(TypeError, 'a mistake');
  });
});

describe('closest name', () => {
  for (const [name, knownNames, suggestion] of [
    ['txCode', ['name', 'tx_code'], 'tx_code'],
    ['claim', ['claims'], 'claims'],
    ['nam', ['name'], 'name'],
    ['namme', ['name'], 'name'],
    ['nane', ['name'], 'name'],
    ['nmae', ['name'], 'name'],
    ['coluor', ['colour', 'color'], 'colour'],
    ['credentail', ['credential'], 'credential'],
    ['crdentail', ['credential'], 'credential'],
    ['lifetim', ['lifetimes', 'life_time'], 'lifetimes'],
    ['credentiel', ['credentia', 'credential', 'credentiol'], 'credential'],
  ] as const) {
    it(`of ${name} is ${suggestion}`, () => expect(closestName(name, knownNames)).to.equal(suggestion));
  }

  for (const [name, knownNames] of [
    ['ab', 'ac'],
    ['id', 'idx'],
    ['cxmd', 'cyxd'],
    ['cmxd', 'cxyd'],
    ['mane', 'name'],
    ['colours', 'flavour'],
    ['crdetail', 'credential'],
    ['name', 'nickname'],
    ['x', 'y'],
  ] as const) {
    it(`of ${name} is not ${knownNames}`, () => expect(closestName(name, [knownNames])).to.equal(undefined));
  }

  it('is suggested if there is one', () => {
    expect(unknownPropertyMessage('nam', ['name'])).to.equal('there is no such property; did you mean name?');
    expect(unknownPropertyMessage('colour', ['name'])).to.equal('there is no such property');
    expect(unknownPropertyMessage('colour', [])).to.equal('there is no such property');
  });
});
