import type { Consent } from '../../../application/oauth/consents.ts';
import { escapeHtml, page } from './page.ts';

/** Asks the user whether the wallet shall have the credentials. */
export function consentPage(consent: Consent): string {
  const { issuerName, credentials, action, fields } = consent;
  const title = `${issuerName}: add to your wallet?`;
  const items = credentials.map((name) => `<li>${escapeHtml(name)}</li>`).join('\n');
  const hidden = Object.entries(fields)
    .map(([name, value]) => `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`)
    .join('\n');
  return page(
    title,
    `<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(issuerName)} will issue to your wallet:</p>
<ul>
${items}
</ul>
${recipient(consent)}
<form method="post" action="${escapeHtml(action)}">
${hidden}
<button type="submit" class="primary" id="approve" name="decision" value="approve">Approve</button>
<button type="submit" class="secondary" id="deny" name="decision" value="deny">Deny</button>
</form>`,
  );
}

/** `bdi`: what a stranger calls itself cannot turn the words around it. */
function recipient({ clientId, isVerified, destination }: Consent): string {
  const name = `<bdi id="client">${escapeHtml(clientId)}</bdi>`;
  const place = `<strong id="destination">${escapeHtml(destination)}</strong>`;
  const goesTo = destination.endsWith(':')
    ? `Your answer opens the app for links that begin with ${place}`
    : `Your answer takes you to ${place}`;
  if (isVerified) return `<p>${goesTo}</p>\n<p class="note">Wallet: ${name}</p>`;
  return `<div class="warning">
<p>${goesTo}</p>
<p>This wallet is <strong>not verified</strong>. It calls itself ${name}, and nobody has checked that. Approve only if you started this yourself and know where the answer goes.</p>
</div>`;
}
