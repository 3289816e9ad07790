/** The names in which the two forms of the realtime protocol differ. */
export interface Dialect {
  readonly isBeta: boolean;
  /** Prefixes of the events with text, audio, and the transcript of the audio. */
  readonly textEvent: string;
  readonly audioEvent: string;
  readonly transcriptEvent: string;
  /** Types of content that the model writes. */
  readonly textContent: string;
  readonly audioContent: string;
  readonly modalities: string;
}

const gaDialect: Dialect = {
  isBeta: false,
  textEvent: 'response.output_text',
  audioEvent: 'response.output_audio',
  transcriptEvent: 'response.output_audio_transcript',
  textContent: 'output_text',
  audioContent: 'output_audio',
  modalities: 'output_modalities',
};

const betaDialect: Dialect = {
  isBeta: true,
  textEvent: 'response.text',
  audioEvent: 'response.audio',
  transcriptEvent: 'response.audio_transcript',
  textContent: 'text',
  audioContent: 'audio',
  modalities: 'modalities',
};

/** The form that a client requests by its headers. */
export function dialectOf(headers: NodeJS.Dict<string | string[]>): Dialect {
  const offers = (name: string, word: string): boolean =>
    String(headers[name] ?? '')
      .split(',')
      .some((each) => each.trim() === word);
  return offers('openai-beta', 'realtime=v1') || offers('sec-websocket-protocol', 'openai-beta.realtime-v1')
    ? betaDialect
    : gaDialect;
}
