import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { waitUntil } from '../support/rabbitmq.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { offer } from '../support/revocable-cards.ts';
import { Checker } from './checker.ts';
import type { Issuance } from './ledger.ts';
import { Load } from './load.ts';
import { World } from './world.ts';

/** A single process needs no broker. */
const SPREAD_MS = 300;

/** These tests feed the checker with false records, which it must find. */
describe('checker of the fault suite', () => {
  let database: TestDatabase | undefined;
  let world: World;
  let checker: Checker;

  before(async () => {
    database = await databases()
      .find(({ name }) => name === 'sqlite')
      ?.open();
    world = await World.open({ processes: 1, databaseUrl: database?.url ?? '' });
    checker = new Checker(world, SPREAD_MS);
    const load = new Load(world).start();
    try {
      await waitUntil('the load did each thing twice', hasEnough);
    } finally {
      await load.stop();
    }
  });
  after(async () => {
    await world?.end();
    await database?.drop();
  });

  /** Whether the ledger contains the records that the tests below change. */
  const hasEnough = () => {
    const issuances = [...world.ledger.issuances.values()].filter(({ entries }) => entries.length > 0);
    return (
      issuances.filter(({ revocations }) => revocations.asked === 0).length > 1 &&
      issuances.filter(({ revocations }) => revocations.told > 0).length > 1 &&
      [...world.ledger.presentations.values()].filter(({ presented }) => presented > 0).length > 1 &&
      world.ledger.deliveries.size > 1
    );
  };
  const findIssuance = (condition: (issuance: Issuance) => boolean): Issuance => {
    const issuance = [...world.ledger.issuances.values()].find((candidate) => candidate.entries.length > 0 && condition(candidate));
    if (issuance === undefined) throw new Error('the load was too short');
    return issuance;
  };
  const check = async () => (await checker.check()).join('\n');

  it('reports nothing for consistent records', async () => {
    expect(await checker.check({ all: true, deliveries: true })).to.deep.equal([]);
  });

  it('reports an acknowledged change that is missing', async () => {
    world.ledger.offered('never-made');
    expect(await check()).to.include('never-made is gone: 404');
    world.ledger.issuances.delete('never-made');
  });

  it('reports a status list entry that was allocated twice', async () => {
    const [first, second] = [...world.ledger.issuances.values()].filter(({ entries }) => entries.length > 0);
    const [entry] = first?.entries ?? [];
    if (entry === undefined || second === undefined) throw new Error('the load was too short');
    second.entries.push(entry);
    expect(await check()).to.include(`was given to ${first?.session} and to ${second.session}`);
    second.entries.pop();
  });

  it('reports a revocation that is missing in the lists and in the audit log', async () => {
    const { session, revocations } = findIssuance((one) => one.revocations.asked === 0);
    Object.assign(revocations, { asked: 1, told: 1 });
    const problems = await check();
    expect(problems).to.include(`${session} was revoked and `);
    expect(problems).to.include(`${session}: 0 audit entries, told 1 of 1`);
    Object.assign(revocations, { asked: 0, told: 0 });
  });

  it('reports a revocation that was not requested', async () => {
    const { session, revocations } = findIssuance((one) => one.revocations.told > 0);
    const revocationsBefore = { ...revocations };
    Object.assign(revocations, { asked: 0, told: 0 });
    const problems = await check();
    expect(problems).to.include(`${session} was not revoked and `);
    expect(problems).to.include(`${session}: 1 audit entries, told 0 of 0`);
    Object.assign(revocations, revocationsBefore);
  });

  it('reports a presentation that did not take place', async () => {
    const { body } = await world.call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'plain' });
    const presentation = world.ledger.requested(body.session, false);
    world.ledger.presented(presentation);
    expect(await check()).to.include(`${body.session} was presented and is active`);
    world.ledger.presentations.delete(body.session);
  });

  it('reports deliveries with two ids, and deliveries without an end', async () => {
    const [session = ''] = world.ledger.deliveries.keys();
    world.ledger.delivered(session, 'another-id');
    world.ledger.delivered('never-made', 'its-id');
    const problems = (await checker.check({ deliveries: true })).join('\n');
    expect(problems).to.include(`heard of ${session} under 2 ids`).and.to.include('heard of never-made, which is');
    world.ledger.deliveries.delete(session);
    world.ledger.deliveries.delete('never-made');
  });

  it('reports a lost change of the administrator', async () => {
    const { config } = world.ledger;
    Object.assign(config, { asked: config.asked + 1, told: config.asked + 1 });
    expect(await check()).to.match(/the configuration is version \d+, told was \d+/);
  });

  it('reports a code that is redeemed again', async () => {
    const { uri } = await offer(world.deployment, world.tenant);
    const code = await new RawWallet(world.deployment, world.tenant.id).code(uri);
    world.ledger.spent.splice(0, world.ledger.spent.length, code);
    expect(await check()).to.include('a code was redeemed that had been before');
  });

  it('reports a second success of a single-use value', async () => {
    const issuance = findIssuance(() => true);
    world.ledger.redeemed(issuance);
    world.ledger.issued(issuance, 'a nonce', []);
    world.ledger.issued(issuance, 'a nonce', []);
    const [presentation] = [...world.ledger.presentations.values()].filter((one) => one.presented > 0);
    if (presentation === undefined) throw new Error('the load was too short');
    world.ledger.presented(presentation);
    const problems = await check();
    expect(problems)
      .to.match(/was redeemed twice/)
      .and.to.match(/nonce was taken twice/);
    expect(problems).to.match(/took two presentations/);
  });
});
