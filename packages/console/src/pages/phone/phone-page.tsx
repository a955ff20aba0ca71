import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { handset } from './handset.ts';
import { Phone } from './phone.tsx';
import { wanted } from './wanted.ts';

const isBusy = signal(false);

/** The simulated phone for links of one's own: an offer or a request of any tenant of this service. */
export default function PhonePage() {
  useEffect(() => {
    const link = wanted.value;
    wanted.value = undefined;
    if (link !== undefined) void open(link);
  }, []);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    void open(String(new FormData(form).get('link')).trim());
    form.reset();
  };
  return (
    <>
      <h1>Phone</h1>
      <p>A wallet of other people’s code in this window, for offers and requests of your own. Its cards and keys end with the window.</p>
      <form class="filters" onSubmit={submit}>
        <label>
          Link of an offer or a request
          <input name="link" spellcheck={false} autocomplete="off" />
        </label>
        <button type="submit" aria-busy={isBusy.value}>
          Open in the phone
        </button>
      </form>
      <div class="playground">
        <Phone />
      </div>
    </>
  );
}

async function open(link: string): Promise<void> {
  isBusy.value = true;
  await handset.scan(link);
  isBusy.value = false;
}
