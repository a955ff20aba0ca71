/** A shop that sells wine to adults: it asks their wallet whether they are 18, and for nothing else. See README.md. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import express from 'express';
import { renderSVG } from 'uqr';
import { VidimusClient, VidimusError, verifyWebhook } from 'vidimus/client';
import { orderPage, shopPage } from './pages.mjs';

const {
  VIDIMUS_URL = 'http://localhost:3000',
  VIDIMUS_CLIENT_ID,
  VIDIMUS_CLIENT_SECRET,
  WEBHOOK_SECRET,
  /** Whose word counts: certificates of issuers or of their authorities, in PEM. */
  TRUST_ANCHORS,
  PORT = '8080',
  SHOP_URL = `http://127.0.0.1:${PORT}`,
} = process.env;

const vidimus = new VidimusClient({ url: VIDIMUS_URL, clientId: VIDIMUS_CLIENT_ID, clientSecret: VIDIMUS_CLIENT_SECRET });
/** By the id in the cookie of the browser that ordered. A real shop keeps them in its database. */
const orders = new Map();
const orderOfSession = new Map();
const MAX_ORDERS = 10_000;

/** Nobody gives a browser another order than its own: a name that begins so is set by this host alone, and by https. */
const IS_HTTPS = SHOP_URL.startsWith('https:');
const COOKIE = IS_HTTPS ? '__Host-order' : 'order';

const app = express();
app.disable('x-powered-by');
app.use((request, response, next) => {
  response.set({ 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer', 'X-Frame-Options': 'DENY' });
  // A form of another site orders nothing in the name of whoever looks at it.
  if (request.method === 'POST' && request.get('sec-fetch-site') === 'cross-site')
    return response.status(403).send('Order on the page of the shop');
  next();
});

app.get('/', (_request, response) => {
  response.send(shopPage());
});

app.post('/orders', async (_request, response) => {
  if (orders.size >= MAX_ORDERS) return response.status(503).send('Too many orders');
  const id = randomBytes(24).toString('base64url');
  const made = await vidimus.post('/verifier/offer', { body: { response_type: 'uri', requestId: 'of-age', reference: id.slice(0, 8) } });
  const { uri, crossDeviceUri } = made;
  orders.set(id, { uri, crossDeviceUri, state: 'waiting', isAdult: false });
  orderOfSession.set(made.session, id);
  void follow(id, made.session);
  // What the wallet answers counts for this browser alone.
  response.cookie(COOKIE, id, { httpOnly: true, sameSite: 'lax', secure: IS_HTTPS });
  response.redirect(303, '/order');
});

app.get('/order', (request, response) => {
  const order = orderOf(request);
  if (order === undefined) return response.redirect(303, '/');
  response.send(orderPage(order, renderSVG(order.crossDeviceUri)));
});

app.get('/order/state', (request, response) => {
  response.json({ state: orderOf(request)?.state ?? 'unknown' });
});

/** The answer of the wallet, before the wallet itself hears that it was taken. */
app.post('/webhooks/vidimus', express.raw({ type: 'application/json', limit: '1mb' }), async (request, response) => {
  let delivery;
  try {
    delivery = await verifyWebhook(request.headers, request.body, WEBHOOK_SECRET);
  } catch (error) {
    console.error(`a webhook was refused: ${error.message}`);
    return response.status(401).end();
  }
  const { session, credentials } = delivery.body;
  const order = orders.get(orderOfSession.get(session));
  // A delivery that comes twice says the same twice.
  if (order !== undefined) {
    const age = credentials.find(({ id }) => id === 'age')?.values;
    order.isAdult = age?.age_equal_or_over?.['18'] === true;
  }
  response.status(204).end();
});

/** Waits until the wallet has answered, or nobody has in time. */
async function follow(id, session) {
  const order = orders.get(id);
  try {
    const onStatus = (status) => {
      if (status === 'fetched') order.state = 'scanned';
    };
    const ended = await vidimus.waitForSession(session, { onStatus });
    if (ended.status !== 'completed') console.error(`order ${id.slice(0, 8)}: ${ended.failure?.code ?? ended.status}`);
    const isGood = ended.status === 'completed' && order.isAdult;
    order.state = isGood ? 'approved' : ended.status === 'expired' ? 'expired' : 'refused';
  } catch (error) {
    console.error(`order ${id.slice(0, 8)}: ${error.message}`);
    order.state = 'refused';
  } finally {
    orderOfSession.delete(session);
    setTimeout(() => orders.delete(id), 600_000).unref();
  }
}

function orderOf(request) {
  const cookies = (request.headers.cookie ?? '').split('; ').map((pair) => pair.split('='));
  return orders.get(cookies.find(([name]) => name === COOKIE)?.[1]);
}

/** The question, written anew at each start: what is in this file is what is asked. */
async function writeQuestion() {
  /** @type {import('vidimus/client').Schemas['PresentationConfigurationInput']} */
  const question = {
    id: 'of-age',
    description: 'Is the customer 18 or older?',
    dcql_query: {
      credentials: [
        { id: 'age', format: 'dc+sd-jwt', meta: { vct_values: ['urn:eudi:pid:1'] }, claims: [{ path: ['age_equal_or_over', '18'] }] },
      ],
    },
    webhook: { url: `${SHOP_URL}/webhooks/vidimus` },
    values: 'requested',
    ...(TRUST_ANCHORS && { trustAnchors: [{ certificate: readFileSync(TRUST_ANCHORS, 'utf8') }] }),
  };
  const { id, ...changes } = question;
  try {
    await vidimus.patch('/verifier/config/{id}', { path: { id }, body: changes });
  } catch (error) {
    if (!(error instanceof VidimusError) || error.code !== 'not_found') throw error;
    await vidimus.post('/verifier/config', { body: question });
  }
}

await writeQuestion();
app.listen(Number(PORT), '127.0.0.1', () => console.log(`the shop is at ${SHOP_URL}`));
