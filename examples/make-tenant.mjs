/**
 * Makes a tenant for an example, with everything that its backend needs, and writes it into an env file, which must not be
 * there yet: a secret that is shown once would be gone with what stands in it. Without a file it is printed.
 * node --env-file=data/secrets.env examples/make-tenant.mjs shop examples/shop/.env
 */
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { VidimusClient, VidimusError } from 'vidimus/client';

const { VIDIMUS_URL: url = 'http://localhost:3000', AUTH_CLIENT_ID, AUTH_CLIENT_SECRET } = process.env;
const [id = 'example', file] = process.argv.slice(2);
let isMade = false;
const ELSEWHERE = 'is the service at another address, set VIDIMUS_URL to that (VIDIMUS_URL=http://localhost:<PORT>)';

try {
  if (!AUTH_CLIENT_ID || !AUTH_CLIENT_SECRET) {
    throw new Error('AUTH_CLIENT_ID and AUTH_CLIENT_SECRET are missing; run node with --env-file=data/secrets.env');
  }
  if (file === undefined) process.stdout.write(await makeTenant());
  else await writeNew(file, makeTenant);
} catch (error) {
  console.error(`make-tenant: ${inOneLine(error)}`);
  process.exitCode = 1;
}

async function makeTenant() {
  const operator = new VidimusClient({ url, clientId: AUTH_CLIENT_ID, clientSecret: AUTH_CLIENT_SECRET });
  const { clients } = await operator.post('/tenant', {
    body: {
      id,
      name: `The ${id}`,
      // What this one backend does. A real one that only asks has `presentation:request` alone.
      roles: ['issuance:manage', 'issuance:offer', 'presentation:manage', 'presentation:request'],
    },
  });
  isMade = true;
  const { clientId, secret: clientSecret } = clients[0];
  const tenant = new VidimusClient({ url, clientId, clientSecret });
  const { secret } = await tenant.post('/webhook-secret/rotate', { body: { overlapSeconds: 0 } });
  return [
    `VIDIMUS_URL=${url}`,
    `VIDIMUS_CLIENT_ID=${clientId}`,
    `VIDIMUS_CLIENT_SECRET=${clientSecret}`,
    `WEBHOOK_SECRET=${secret}`,
    '',
  ].join('\n');
}

/** The file is made before anything is called, and goes again when there is nothing to write into it. */
async function writeNew(path, make) {
  const opened = openSync(path, 'wx', 0o600);
  try {
    writeSync(opened, await make());
  } catch (error) {
    rmSync(path);
    throw error;
  } finally {
    closeSync(opened);
  }
}

/** What is wrong, and what to do. */
function inOneLine(error) {
  if (error.code === 'EEXIST') return `${file} is there already; name another file, or remove it if nobody needs it`;
  if (isMade) return `${error.message}; the tenant "${id}" is there, so remove it (DELETE /tenant/${id}) and try again`;
  if (!(error instanceof VidimusError)) return error.message;
  if (error.code === 'conflict') return `${error.detail}; its secret was shown when it was made. Take another id than "${id}"`;
  if (error.code === 'invalid_client') return `${url} does not know this AUTH_CLIENT_ID and AUTH_CLIENT_SECRET; ${ELSEWHERE}`;
  if (['unreachable', 'timeout', 'unexpected_answer'].includes(error.code))
    return `${url}: ${error.detail}. Start the service; ${ELSEWHERE}`;
  return error.message;
}
