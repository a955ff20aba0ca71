import { expect } from 'chai';
import { withoutIssuers } from '../../support/failures.ts';
import type { FetchedRequest } from '../../support/present.ts';
import type { JsonProperties } from '../../support/sd-jwt-maker.ts';
import { CARD_QUERY, type Case, type ConfigurationCase, LICENCE_QUERY, PASS_QUERY, type PresentationCase, type World } from './world.ts';

/** Values that the presentations of these tests contain. */
const VALUES = /Erika|Nygård/;

/** The session contains no verified values, and the backend got none. */
async function expectNoValues(world: World, request: FetchedRequest): Promise<void> {
  const webhookBodies = world.webhookBodies(request);
  const sessionBody = await world.session(request);
  expect(JSON.stringify(sessionBody), 'the session').to.not.match(VALUES);
  expect(JSON.stringify(webhookBodies), 'the backend').to.not.match(VALUES);
  const results: JsonProperties[] = [...(sessionBody['credentials'] ?? []), ...webhookBodies.flatMap(({ credentials }) => credentials)];
  for (const result of results) expect(result, 'no value, not even an empty one').to.not.have.property('values');
}

export async function expectNoConfiguration(world: World, one: ConfigurationCase): Promise<void> {
  const { body = {}, status = 400, row } = one;
  const id = `refused-${row}`;
  const right = { id, dcql_query: { credentials: [CARD_QUERY] } };
  const answer = await (one.run?.(world) ?? world.admin('POST', '/verifier/config', { ...right, ...body }));
  expect(answer.status, answer.text).to.equal(status);
  expect(answer.headers.get('content-type')).to.equal('application/problem+json');
  expect((await world.admin('GET', `/verifier/config/${id}`)).status, 'no configuration was stored').to.equal(404);
}

export async function expectOutcome(world: World, one: Case): Promise<void> {
  const { expected } = one;
  const request = await world.ask(one.configuration);
  const answer = await one.run(world, request);
  expect(answer.status, answer.text).to.equal(expected.status);
  if (expected.status >= 400) expect(answer.body?.error, answer.text).to.equal('invalid_request');
  const { status, failure, credentials } = await world.session(request);
  expect(status).to.equal(expected.session);
  if (expected.code !== undefined) expect(failure?.code, JSON.stringify(failure)).to.equal(expected.code);
  if (status === 'completed') expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'card', values: { name: 'Erika' } }]);
  else await expectNoValues(world, request);
  await one.assertAfter?.(world, request);
  const secondResponse = await world.answer(request, { card: [world.card(request)] });
  if (expected.staysOpen === true) {
    expect(secondResponse.status, 'a valid response is still accepted').to.equal(200);
    return;
  }
  expect(secondResponse.status, 'no further response is accepted').to.be.oneOf([400, 410]);
  expect((await world.session(request))['status']).to.equal(status);
}

/** Encrypted with a backend, and unencrypted without one: the service processes these responses differently. */
const MODES = [{}, { webhook: null, responseMode: 'direct_post' }];

export async function expectRejectedPresentation(world: World, one: PresentationCase): Promise<void> {
  const { format, effect = 'discarded', reason } = one;
  const query = { ...(format === 'mso_mdoc' ? LICENCE_QUERY : CARD_QUERY), ...one.query };
  // `expectOthersCount` presents the same credential encrypted and with a backend.
  const modes = effect === 'needed' ? MODES : MODES.slice(1);
  for (const mode of modes) {
    const dcql_query = { credentials: [query] };
    const request = await world.ask({ dcql_query, ...mode, ...(await configurationOf(world, one)) });
    const answer = await world.answer(request, { [query.id]: [await one.present(world, request)] });
    expect(answer.status, answer.text).to.equal(400);
    expect(answer.text, 'the response contains no reason').to.not.include(reason);
    await expectFailed(world, request, query.id, one);
  }
  if (effect !== 'needed') await expectOthersCount(world, one, query);
  await world.runChecks();
}

const configurationOf = async (world: World, { configuration }: PresentationCase): Promise<JsonProperties> =>
  typeof configuration === 'function' ? configuration(world) : (configuration ?? {});

/** The presentation without a change is accepted: the rejections above have no other cause than the change of the case. */
export async function expectAccepted(
  world: World,
  format: 'dc+sd-jwt' | 'mso_mdoc',
  configuration: JsonProperties,
  present: (request: FetchedRequest) => string,
): Promise<void> {
  const query = format === 'mso_mdoc' ? LICENCE_QUERY : CARD_QUERY;
  for (const mode of MODES) {
    const request = await world.ask({ dcql_query: { credentials: [query] }, ...mode, ...configuration });
    const answer = await world.answer(request, { [query.id]: [present(request)] });
    const { status, report } = await world.session(request);
    expect([answer.status, status], JSON.stringify(report)).to.deep.equal([200, 'completed']);
  }
}

async function expectFailed(world: World, request: FetchedRequest, id: string, { reason, detail }: PresentationCase): Promise<void> {
  const sessionBody = await world.session(request);
  expect([sessionBody['status'], sessionBody['failure']?.code]).to.deep.equal(['failed', 'presentation_refused']);
  const failedCheck = (sessionBody['report'] as JsonProperties[]).find((entry) => entry['id'] === id && entry['result'] === 'failed');
  expect(failedCheck?.['reason'], JSON.stringify(sessionBody['report'])).to.equal(reason);
  if (detail !== undefined) expect(failedCheck?.['detail']).to.match(detail);
  await expectNoValues(world, request);
  for (const { credentials } of world.webhookBodies(request)) {
    expect(credentials.map((entry: JsonProperties) => Object.keys(entry))).to.deep.include(['id', 'error']);
  }
}

/** OpenID4VP 1.0 section 8.6: other valid presentations of the response count, unless the whole response is for another request. */
async function expectOthersCount(world: World, one: PresentationCase, query: JsonProperties): Promise<void> {
  const id = query['id'] as string;
  const credential_sets = [{ options: [['pass']] }, { options: [[id]], required: false }];
  const dcql_query = { credentials: [PASS_QUERY, query], credential_sets };
  const request = await world.ask({ dcql_query, ...(await configurationOf(world, one)) });
  const vpToken = { pass: [world.pass(request)], [id]: [await one.present(world, request)] };
  const answer = await world.answer(request, vpToken);
  // OpenID4VP 1.0 section 14.2.2: a device that signed no transcript of the request answers another one.
  if (one.effect === 'spoilsAll' || one.reason === 'device_signature') {
    expect(answer.status, answer.text).to.equal(400);
    await expectFailed(world, request, id, one);
    return;
  }
  expect(answer.status, answer.text).to.equal(200);
  const results = [
    { id: 'pass', values: { name: 'Erika' } },
    { id, error: one.reason },
  ];
  const sessionBody = await world.session(request);
  expect([sessionBody['status'], withoutIssuers(sessionBody['credentials'])]).to.deep.equal(['completed', results]);
  const webhookBodies = world
    .webhookBodies(request)
    .map(({ credentials, ...body }) => ({ ...body, credentials: withoutIssuers(credentials) }));
  expect(webhookBodies).to.deep.equal([{ session: request.session, credentials: results }]);
}
