// A connection to the server that comes back when it breaks.

class Connection {
  // take: is called with every message. greet: what is said first, each time.
  constructor(path, take, greet = () => null) {
    this.path = path;
    this.take = take;
    this.greet = greet;
    this.wait = 500;
    this.sign = html("p", { class: "connection", role: "status" });
    this.open();
  }

  open() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    this.socket = new WebSocket(`${scheme}//${location.host}${this.path}`);
    this.socket.onopen = () => {
      this.wait = 500;
      this.sign.textContent = "";
      const words = this.greet();
      if (words) this.say(words);
    };
    this.socket.onmessage = (event) => this.take(JSON.parse(event.data));
    this.socket.onclose = () => {
      if (this.ended) return;
      this.sign.textContent = "The server does not answer. Trying again …";
      setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(10000, 2 * this.wait);
    };
  }

  // Come back no more.
  end() { this.ended = true; }

  say(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}
