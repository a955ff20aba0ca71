import { expect } from 'chai';
import { withoutIssuers } from '../../support/failures.ts';
import type { FetchedRequest } from '../../support/present.ts';
import type { JsonProperties } from '../../support/sd-jwt-maker.ts';
import { CARD_QUERY, type Case, type ConfigurationCase, LICENCE_QUERY, PASS_QUERY, type PresentationCase, type World } from './world.ts';

/** Values that presentations of this world show. */
const VALUES = /Erika|Nygård/;

/** Nothing verified is left in the session, and the backend saw no value. */
async function expectNothing(world: World, asked: FetchedRequest): Promise<void> {
  const told = world.told(asked);
  const seen = await world.session(asked);
  expect(JSON.stringify(seen), 'the session').to.not.match(VALUES);
  expect(JSON.stringify(told), 'the backend').to.not.match(VALUES);
  const results: JsonProperties[] = [...(seen['credentials'] ?? []), ...told.flatMap(({ credentials }) => credentials)];
  for (const result of results) expect(result, 'no value, not even an empty one').to.not.have.property('values');
}

export async function expectNoConfiguration(world: World, one: ConfigurationCase): Promise<void> {
  const { body = {}, status = 400, row } = one;
  const id = `refused-${row}`;
  const right = { id, dcql_query: { credentials: [CARD_QUERY] } };
  const answer = await (one.run?.(world) ?? world.admin('POST', '/verifier/config', { ...right, ...body }));
  expect(answer.status, answer.text).to.equal(status);
  expect(answer.headers.get('content-type')).to.equal('application/problem+json');
  expect((await world.admin('GET', `/verifier/config/${id}`)).status, 'nothing was kept').to.equal(404);
}

export async function expectOutcome(world: World, one: Case): Promise<void> {
  const { expected } = one;
  const asked = await world.ask(one.configuration);
  const answer = await one.run(world, asked);
  expect(answer.status, answer.text).to.equal(expected.status);
  if (expected.status >= 400) expect(answer.body?.error, answer.text).to.equal('invalid_request');
  const { status, failure, credentials } = await world.session(asked);
  expect(status).to.equal(expected.session);
  if (expected.code !== undefined) expect(failure?.code, JSON.stringify(failure)).to.equal(expected.code);
  if (status === 'completed') expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'card', values: { name: 'Erika' } }]);
  else await expectNothing(world, asked);
  await one.also?.(world, asked);
  const again = await world.answer(asked, { card: [world.card(asked)] });
  if (expected.answerable === true) {
    expect(again.status, 'the right answer is still taken').to.equal(200);
    return;
  }
  expect(again.status, 'nothing is taken any more').to.be.oneOf([400, 410]);
  expect((await world.session(asked))['status']).to.equal(status);
}

/** With a backend and encrypted, and without either: the response takes two ways through the service. */
const MODES = [{}, { webhook: null, responseMode: 'direct_post' }];

export async function expectRefusedPresentation(world: World, one: PresentationCase): Promise<void> {
  const { format, effect = 'discarded', reason } = one;
  const own = { ...(format === 'mso_mdoc' ? LICENCE_QUERY : CARD_QUERY), ...one.query };
  // `expectBeside` presents the same with a backend and encrypted.
  const modes = effect === 'needed' ? MODES : MODES.slice(1);
  for (const mode of modes) {
    const dcql_query = { credentials: [own] };
    const asked = await world.ask({ dcql_query, ...mode, ...(await configurationOf(world, one)) });
    const answer = await world.answer(asked, { [own.id]: [await one.present(world, asked)] });
    expect(answer.status, answer.text).to.equal(400);
    expect(answer.text, 'the wallet learns no reason').to.not.include(reason);
    await expectFailed(world, asked, own.id, one);
  }
  if (effect !== 'needed') await expectBeside(world, one, own);
  await world.settle();
}

const configurationOf = async (world: World, { configuration }: PresentationCase): Promise<JsonProperties> =>
  typeof configuration === 'function' ? configuration(world) : (configuration ?? {});

/** What no case bends is taken: a refusal above has no other cause than what the case says. */
export async function expectTaken(
  world: World,
  format: 'dc+sd-jwt' | 'mso_mdoc',
  configuration: JsonProperties,
  present: (asked: FetchedRequest) => string,
): Promise<void> {
  const own = format === 'mso_mdoc' ? LICENCE_QUERY : CARD_QUERY;
  for (const mode of MODES) {
    const asked = await world.ask({ dcql_query: { credentials: [own] }, ...mode, ...configuration });
    const answer = await world.answer(asked, { [own.id]: [present(asked)] });
    const { status, report } = await world.session(asked);
    expect([answer.status, status], JSON.stringify(report)).to.deep.equal([200, 'completed']);
  }
}

async function expectFailed(world: World, asked: FetchedRequest, id: string, { reason, detail }: PresentationCase): Promise<void> {
  const seen = await world.session(asked);
  expect([seen['status'], seen['failure']?.code]).to.deep.equal(['failed', 'presentation_refused']);
  const failed = (seen['report'] as JsonProperties[]).find((entry) => entry['id'] === id && entry['result'] === 'failed');
  expect(failed?.['reason'], JSON.stringify(seen['report'])).to.equal(reason);
  if (detail !== undefined) expect(failed?.['detail']).to.match(detail);
  await expectNothing(world, asked);
  for (const { credentials } of world.told(asked)) {
    expect(credentials.map((entry: JsonProperties) => Object.keys(entry))).to.deep.include(['id', 'error']);
  }
}

/** OpenID4VP 1.0 section 8.6: what is good beside it counts, unless the whole response answers another request. */
async function expectBeside(world: World, one: PresentationCase, own: JsonProperties): Promise<void> {
  const id = own['id'] as string;
  const credential_sets = [{ options: [['pass']] }, { options: [[id]], required: false }];
  const dcql_query = { credentials: [PASS_QUERY, own], credential_sets };
  const asked = await world.ask({ dcql_query, ...(await configurationOf(world, one)) });
  const vpToken = { pass: [world.pass(asked)], [id]: [await one.present(world, asked)] };
  const answer = await world.answer(asked, vpToken);
  // OpenID4VP 1.0 section 14.2.2: a device that signed no transcript of the request answers another one.
  if (one.effect === 'spoilsAll' || one.reason === 'device_signature') {
    expect(answer.status, answer.text).to.equal(400);
    await expectFailed(world, asked, id, one);
    return;
  }
  expect(answer.status, answer.text).to.equal(200);
  const results = [
    { id: 'pass', values: { name: 'Erika' } },
    { id, error: one.reason },
  ];
  const seen = await world.session(asked);
  expect([seen['status'], withoutIssuers(seen['credentials'])]).to.deep.equal(['completed', results]);
  const told = world.told(asked).map(({ credentials, ...body }) => ({ ...body, credentials: withoutIssuers(credentials) }));
  expect(told).to.deep.equal([{ session: asked.session, credentials: results }]);
}
