import { listAt, textAt } from '../../parts/json-paths.ts';
import { contrast, contrastInWords } from './contrast.ts';

const UNSTATED = { background: '#1f2937', text: '#ffffff' };

/** The card as a wallet may show it, and whether people can read it. */
export function CardPreview({ draft }: { readonly draft: unknown }) {
  const display = listAt(draft, 'config', 'display')[0];
  const background = textAt(display, 'background_color');
  const text = textAt(display, 'text_color');
  const [behind, ahead] = [background || UNSTATED.background, text || UNSTATED.text];
  const ratio = contrast(behind, ahead);
  const logo = textAt(display, 'logo', 'uri');
  return (
    <section class="card" aria-labelledby="as-card">
      <h2 id="as-card">As a card</h2>
      {/* One that cannot be read is judged below, and is not what this page is judged by. */}
      <div class="specimen" aria-hidden="true" style={{ backgroundColor: behind, color: ahead }}>
        <strong>{textAt(display, 'name') || textAt(draft, 'id') || 'Unnamed'}</strong>
        {logo.startsWith('data:image/') && <img src={logo} alt="" />}
        <span>{textAt(display, 'description')}</span>
      </div>
      <p>{ratio === undefined ? 'One of the colours is no hex colour such as #12355b.' : `Contrast ${contrastInWords(ratio)}`}</p>
      {(background === '' || text === '') && (
        <p class="fine">A colour that is not stated is for the wallet to choose; here it is a guess.</p>
      )}
      {logo.startsWith('https:') && <p class="fine">This page loads nothing from elsewhere, so the logo is not shown.</p>}
    </section>
  );
}
